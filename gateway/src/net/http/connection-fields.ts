/**
 * Connection-specific fields of HTTP/1 (RFC 9113 section 8.2.2). HTTP/2 permits only `te: trailers` in
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
