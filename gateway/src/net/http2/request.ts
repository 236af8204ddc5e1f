import { METHODS } from 'node:http'
import { connectionFields } from '../http/connection-fields.ts'
import type { Headers } from '../http/headers.ts'
import { type HttpServerLimits, targetTooLongMessage } from '../http/incoming-request.ts'

/** Head of an HTTP/2 request in the form of HTTP/1. */
export type RequestHead =
  | { readonly kind: 'head'; readonly method: string; readonly target: string; readonly headers: Headers }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

/** Overhead of one field in a header list (RFC 9113 section 6.5.2). */
const fieldOverheadBytes = 32

/** Visible characters: valid in a request line of HTTP/1. */
const targetPattern = /^[\x21-\x7e]+$/
/** Methods of the HTTP/1 parser: names are case-sensitive, and rules and backends share one set. */
const methods: ReadonlySet<string> = new Set(METHODS)

/**
 * Reads the head of a stream from its field lines (names and values alternate). Rejects heads with another
 * meaning after conversion to HTTP/1, and conflicting targets.
 */
export function readRequestHead(lines: readonly string[], limits: HttpServerLimits): RequestHead {
  const headers: Headers = {}
  let method = ''
  let target = ''
  let authority = ''
  let size = 0
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = lines[index] ?? ''
    const value = lines[index + 1] ?? ''
    size += name.length + value.length + fieldOverheadBytes
    if (name === ':method') method = value
    else if (name === ':path') target = value
    else if (name === ':authority') authority = value
    else if (name.startsWith(':')) continue
    else if (connectionFields.has(name) && name !== 'te') return refused(400, `HTTP/2 has no field ${name}`)
    else addField(headers, name, value)
  }
  if (size > limits.maxHeaderBytes) return refused(431, 'request headers are too large')
  if (method === 'CONNECT') return refused(405, 'CONNECT is not supported')
  if (!methods.has(method)) return refused(400, 'unknown method')
  if (target.length > limits.maxTargetBytes) return refused(414, targetTooLongMessage)
  if (!targetPattern.test(target)) return refused(400, 'malformed request target')

  const host = hostOf(authority, headers['host'])
  if (host === undefined) return refused(400, ':authority and host must name one host')
  headers['host'] = host
  return { kind: 'head', method, target, headers }
}

/** Joins lines of one name as HTTP/1 does, so that no credential or length disappears. */
function addField(headers: Headers, name: string, value: string): void {
  const known = Object.hasOwn(headers, name) ? headers[name] : undefined
  // RFC 9113 section 8.2.3: a cookie may be split into several lines.
  headers[name] = known === undefined ? value : `${known}${name === 'cookie' ? '; ' : ', '}${value}`
}

/**
 * RFC 9113 section 8.3.1: `:authority` and `host` must be equal unless one is missing. User information is
 * not permitted.
 */
function hostOf(authority: string, host: string | string[] | undefined): string | undefined {
  if (typeof host === 'object') return undefined
  if (authority !== '' && host !== undefined && authority.toLowerCase() !== host.toLowerCase())
    return undefined
  const name = authority === '' ? host : authority
  return name === undefined || name === '' || /[@,\s]/.test(name) ? undefined : name
}

function refused(status: number, message: string): RequestHead {
  return { kind: 'refused', status, message }
}
