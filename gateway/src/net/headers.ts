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

/** The first value of a header, or undefined. */
export function firstHeader(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value[0] : value
}

/** A new set of headers without those that `dropped` names, without hop-by-hop ones and those `connection` lists. */
export function forwardableHeaders(headers: Headers, dropped: { has(name: string): boolean }): Headers {
  const kept: Headers = {}
  const connection = firstHeader(headers, 'connection')
  const listed =
    connection === undefined || isKeepAlive(connection) ? undefined : connectionOptions(connection)
  for (const name in headers) {
    if (hopByHopHeaders.has(name) || dropped.has(name) || listed?.has(name)) continue
    const value = headers[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

function isKeepAlive(connection: string): boolean {
  return connection === 'keep-alive' || connection === 'close' || connection === 'Keep-Alive'
}

function connectionOptions(connection: string): Set<string> {
  return new Set(connection.split(',').map((option) => option.trim().toLowerCase()))
}
