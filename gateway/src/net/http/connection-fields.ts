/**
 * RFC 9113 section 8.2.2: fields that speak of one HTTP/1 connection. HTTP/2 has none of them, but for `te: trailers` in
 * requests.
 */
export const connectionFields: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])
