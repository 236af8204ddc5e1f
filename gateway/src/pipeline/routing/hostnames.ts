import { isIPv4 } from 'node:net'

/** Matches every host. */
export const anyHost = '*'

/**
 * Longest DNS name (RFC 1035 section 2.3.4); longer hosts are not looked up, which bounds the time per host.
 */
const maxHostLength = 253

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const bracketed = /^\[[0-9a-f:.]+\]$/

/**
 * Normalises the host of a `Host` header: lower case, without port and trailing dot; empty if it is not a
 * name.
 */
export function normaliseHost(host: string): string {
  let end = host.length
  if (host.startsWith('[')) end = host.indexOf(']') + 1
  else {
    const colon = host.indexOf(':')
    if (colon >= 0) end = colon
  }
  if (host.charCodeAt(end - 1) === 0x2e) end--
  if (end > maxHostLength) return ''
  return (end === host.length ? host : host.slice(0, end)).toLowerCase()
}

/** Normalises a configured hostname; `*` for all hosts. */
export function normaliseHostname(hostname: string | undefined): string {
  if (hostname === undefined || hostname === '' || hostname === anyHost) return anyHost
  const name = hostname.toLowerCase()
  return name.endsWith('.') ? name.slice(0, -1) : name
}

/** Whether a configured hostname is valid. */
export function isHostname(hostname: string): boolean {
  return hostnameMistake(hostname) === undefined
}

/** The mistake in a configured hostname; undefined for a name, `*.name`, `*`, or an address without port. */
export function hostnameMistake(hostname: string): string | undefined {
  const name = normaliseHostname(hostname)
  if (name === anyHost) return undefined
  if (name.length > maxHostLength) return `hostname is longer than ${maxHostLength} characters`
  if (bracketed.test(name) || isIPv4(name)) return undefined
  const isWildcard = name.startsWith('*.')
  const labels = (isWildcard ? name.slice(2) : name).split('.')
  if (labels.every((part) => label.test(part))) return undefined
  if (name.includes('*'))
    return `"*" may only stand for the first labels, as in *.example.com, got "${hostname}"`
  if (/:\d+$/.test(name)) return `hostname must not have a port, got "${hostname}"`
  return `hostname must be a name such as api.example.com or *.example.com, got "${hostname}"`
}

/**
 * The intersection of two configured hostnames, as a hostname; undefined if empty.
 * Gateway API: a route serves the intersection of its hostnames with its listener's.
 */
export function intersectHostnames(one: string | undefined, other: string | undefined): string | undefined {
  const a = normaliseHostname(one)
  const b = normaliseHostname(other)
  if (covers(a, b)) return b
  return covers(b, a) ? a : undefined
}

/**
 * The hostnames of a route on a listener; undefined if their intersection is empty. No hostnames match all.
 */
export function attachedHostnames(
  listenerHostname: string | undefined,
  routeHostnames: readonly string[],
): readonly string[] | undefined {
  if (routeHostnames.length === 0) return [normaliseHostname(listenerHostname)]
  const common = new Set<string>()
  for (const hostname of routeHostnames) {
    const effective = intersectHostnames(listenerHostname, hostname)
    if (effective !== undefined) common.add(effective)
  }
  return common.size === 0 ? undefined : [...common]
}

/** Whether `wide` includes every host of `narrow`. A wildcard matches one label or more. */
function covers(wide: string, narrow: string): boolean {
  if (wide === anyHost || wide === narrow) return true
  return wide.startsWith('*.') && narrow !== anyHost && narrow.endsWith(wide.slice(1))
}

/** Values by hostname. */
export type HostnameTable<V> = {
  readonly exact: Map<string, V>
  /** By the suffix after the `*`: `.example.com`. */
  readonly wildcards: Map<string, V>
  any: V | undefined
}

export function createHostnameTable<V>(): HostnameTable<V> {
  return { exact: new Map(), wildcards: new Map(), any: undefined }
}

/** The value of a configured hostname; calls `create` on first use. */
export function valueOfHostname<V>(table: HostnameTable<V>, hostname: string, create: () => V): V {
  const name = normaliseHostname(hostname)
  if (name === anyHost) {
    table.any ??= create()
    return table.any
  }
  const [values, key] = name.startsWith('*.') ? [table.wildcards, name.slice(1)] : [table.exact, name]
  const known = values.get(key)
  if (known !== undefined) return known
  const value = create()
  values.set(key, value)
  return value
}

/**
 * Visits the values whose hostname matches a host, the most specific first, until `visit` returns a result:
 * the exact name, wildcards from the longest, then all hosts.
 */
export function visitHost<V, A, R>(
  table: HostnameTable<V>,
  host: string,
  visit: (value: V, argument: A) => R | undefined,
  argument: A,
): R | undefined {
  const { exact, wildcards, any } = table
  if (exact.size > 0 || wildcards.size > 0) {
    const name = normaliseHost(host)
    const own = exact.get(name)
    const result = own === undefined ? undefined : visit(own, argument)
    if (result !== undefined) return result
    if (wildcards.size > 0) {
      // A leading dot has no label before it for the wildcard.
      for (let dot = name.indexOf('.', 1); dot > 0; dot = name.indexOf('.', dot + 1)) {
        const wildcard = wildcards.get(name.slice(dot))
        const found = wildcard === undefined ? undefined : visit(wildcard, argument)
        if (found !== undefined) return found
      }
    }
  }
  return any === undefined ? undefined : visit(any, argument)
}
