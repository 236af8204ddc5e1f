import { createHostnameTable, valueOfHostname, visitHost } from './hostnames.ts'

export type HostnameEntry<T> = {
  /** Undefined, empty and `*` match all hosts. */
  readonly hostname: string | undefined
  readonly target: T
}

/**
 * Compiles the selection of a listener by host, among listeners that share a port: only the one with the most
 * specific hostname (Gateway API), the first on equal hostnames.
 */
export function compileListenerTable<T extends {}>(
  entries: Iterable<HostnameEntry<T>>,
): (host: string) => T | undefined {
  const table = createHostnameTable<T>()
  for (const { hostname, target } of entries) valueOfHostname(table, hostname ?? '', () => target)
  return (host) => visitHost(table, host, identity, undefined)
}

function identity<T>(value: T): T {
  return value
}
