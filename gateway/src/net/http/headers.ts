/** Header fields by lower-case name; a list where a field may not be joined (`set-cookie`). */
export type Headers = Record<string, string | string[]>

/** RFC 9110 section 7.6.1 plus the de-facto ones: they describe one connection and are never forwarded. */
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

/** Whether a header describes one connection, whoever sends it. */
export function isHopByHop(name: string): boolean {
  return hopByHopHeaders.has(name)
}

/** The first value of a header, or undefined. */
export function firstHeader(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value[0] : value
}

/** Copies headers without hop-by-hop ones, those that `connection` lists, and those it was made to drop. */
export type HeaderFilter = (headers: Headers) => Headers

/** Names remembered per filter; clients may send any, so there is a bound. */
const maxRememberedNames = 1_000

/** A filter for headers on their way through. `drops` is asked once per name, not once per request. */
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

/** The fields a `connection` header declares hop-by-hop; undefined for the values that name none. */
function connectionOptions(connection: string | string[]): Set<string> | undefined {
  if (connection === 'keep-alive' || connection === 'close') return undefined
  const options = typeof connection === 'string' ? connection : connection.join(',')
  return new Set(options.split(',').map((option) => option.trim().toLowerCase()))
}
