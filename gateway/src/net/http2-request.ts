import type { IncomingHttpHeaders } from 'node:http2'
import { connectionFields } from './connection-fields.ts'
import type { Headers } from './headers.ts'
import type { HttpServerLimits } from './http-server.ts'

/** The head of an HTTP/2 request in the form HTTP/1 has. */
export type StreamHead =
  | { readonly kind: 'head'; readonly method: string; readonly target: string; readonly headers: Headers }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

/** What a name and a value take in a header list besides their own length (RFC 9113 section 6.5.2). */
const fieldOverheadBytes = 32

/** Visible characters: what a request line of HTTP/1 can carry. */
const targetPattern = /^[\x21-\x7e]+$/
const methodPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Reads the head of a stream. What would mean something else once it is forwarded as HTTP/1, or that says where it goes
 * in two ways, is refused.
 */
export function readStreamHead(fields: IncomingHttpHeaders, limits: HttpServerLimits): StreamHead {
  const method = fields[':method'] ?? ''
  const target = fields[':path'] ?? ''
  if (method === 'CONNECT') return refused(405, 'CONNECT is not served')
  if (!methodPattern.test(method)) return refused(400, 'malformed method')
  if (target.length > limits.maxTargetBytes) return refused(414, 'the request target is too long')
  if (!targetPattern.test(target)) return refused(400, 'malformed request target')

  const headers: Headers = {}
  let size = 0
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    size += name.length + value.length + fieldOverheadBytes
    if (name.startsWith(':')) continue
    if (connectionFields.has(name) && name !== 'te') return refused(400, `HTTP/2 has no field ${name}`)
    headers[name] = value
  }
  if (size > limits.maxHeaderBytes) return refused(431, 'request headers are too large')

  const host = hostOf(fields[':authority'], headers['host'])
  if (host === undefined) return refused(400, ':authority and host must name one host')
  headers['host'] = host
  return { kind: 'head', method, target, headers }
}

/** RFC 9113 section 8.3.1: both say the same, or one is missing. User information is no part of it. */
function hostOf(authority: string | undefined, host: string | string[] | undefined): string | undefined {
  if (Array.isArray(host)) return undefined
  if (authority && host !== undefined && authority.toLowerCase() !== host.toLowerCase()) return undefined
  const name = authority || host
  return name === undefined || name === '' || /[@,\s]/.test(name) ? undefined : name
}

function refused(status: number, message: string): StreamHead {
  return { kind: 'refused', status, message }
}
