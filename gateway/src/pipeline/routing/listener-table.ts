import { createHostnameTable, valueOfHostname, visitHost } from './hostnames.ts'

export type HostnameEntry<T> = {
  /** Undefined, empty and `*` are for all hosts. */
  readonly hostname: string | undefined
  readonly target: T
}

/**
 * The listener of a host among those that share a port: the one whose hostname is the most specific, and only that one
 * (Gateway API). Of two with the same hostname the first counts.
 */
export function compileListenerTable<T extends {}>(
  entries: Iterable<HostnameEntry<T>>,
): (host: string) => T | undefined {
  const table = createHostnameTable<T>()
  for (const { hostname, target } of entries) valueOfHostname(table, hostname ?? '', () => target)
  return (host) => visitHost(table, host, itself, undefined)
}

function itself<T>(value: T): T {
  return value
}
