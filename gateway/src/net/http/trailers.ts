import type { Headers } from './headers.ts'

/**
 * RFC 9110 section 6.5.1: fields for framing, routing, authentication or description of a message are not
 * allowed as trailers.
 */
const neverTrailers: ReadonlySet<string> = new Set([
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'max-forwards',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'www-authenticate',
])

/** The fields allowed as trailers; undefined if none remain. */
export function allowedTrailers(fields: Headers | undefined): Headers | undefined {
  if (fields === undefined) return undefined
  let allowed: Headers | undefined
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined || name.startsWith(':') || neverTrailers.has(name)) continue
    allowed ??= {}
    allowed[name] = value
  }
  return allowed
}

/** RFC 9110 section 10.1.4: trailers are sent only to clients with `te: trailers`. */
export function acceptsTrailers(request: Headers): boolean {
  const te = request['te']
  if (te === undefined || te === 'trailers') return te !== undefined
  const codings = typeof te === 'string' ? te : te.join(',')
  return codings.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers')
}
