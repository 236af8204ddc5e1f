/** Header fields by lower-case name; a list for fields that must not be joined (`set-cookie`). */
export type Headers = Record<string, string | string[]>

/** Hop-by-hop fields of RFC 9110 section 7.6.1 and de-facto ones, which are never forwarded. */
const hopByHopHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Whether a field is hop-by-hop, independent of `connection`. */
export function isHopByHop(name: string): boolean {
  return hopByHopHeaders.has(name)
}

/** The first value of a header, or undefined. */
export function firstHeader(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value[0] : value
}

/**
 * Copies headers without hop-by-hop fields, fields listed in `connection`, and fields that the filter drops.
 */
export type HeaderFilter = (headers: Headers) => Headers

/** Limit of cached names per filter; clients may send any name. */
const maxRememberedNames = 1_000

/** Creates a filter for forwarded headers. `drops` is called once per name, not once per request. */
export function createHeaderFilter(drops: (name: string) => boolean): HeaderFilter {
  const decisions = new Map<string, boolean>()

  function decide(name: string): boolean {
    const dropped = hopByHopHeaders.has(name) || drops(name)
    if (decisions.size < maxRememberedNames) decisions.set(name, dropped)
    return dropped
  }

  return (headers) => {
    const kept: Headers = {}
    const connection = headers['connection']
    const listed = connection === undefined ? undefined : connectionOptions(connection)
    for (const name in headers) {
      if (decisions.get(name) ?? decide(name)) continue
      if (listed?.has(name)) continue
      const value = headers[name]
      if (value !== undefined) kept[name] = value
    }
    return kept
  }
}

/** Fields listed in a `connection` header; undefined for values without field names. */
function connectionOptions(connection: string | string[]): Set<string> | undefined {
  if (connection === 'keep-alive' || connection === 'close') return undefined
  const options = typeof connection === 'string' ? connection : connection.join(',')
  return new Set(options.split(',').map((option) => option.trim().toLowerCase()))
}
