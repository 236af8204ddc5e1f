import { isToken } from '../../lib/http-token.ts'
import { type Headers, isHopByHop } from '../../net/http/headers.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'

/** Prefix of request headers that are forwarded. */
const headerPrefix = 'x-forward-'

/** Headers that are forwarded under their own name. */
const plainHeaders = ['accept', 'content-type', 'content-length'] as const

/** Derived from the request, or statements of a proxy that the gateway could trust. */
const reservedNames: ReadonlySet<string> = new Set([
  'accept',
  'content-length',
  'content-type',
  'expect',
  'forwarded',
  'host',
  'http2-settings',
  'via',
  'x-real-ip',
  'x-tollgate-console',
])
const reservedPrefixes = [headerPrefix, 'x-forwarded', 'x-envoy-', ':', 'proxy-', 'sec-']

/** Field values without control characters (RFC 9110 section 5.5). */
const fieldValue = /^(?:[\x21-\x7e\x80-\xff](?:[\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/
const maxHeaders = 100

export type ForwardedHeaders = {
  readonly kind: 'headers'
  readonly headers: Headers
  /** Value of `x-forward-host`. */
  readonly host: string | undefined
}

/**
 * Selects the headers of a forwarded request: `x-forward-NAME` as `NAME`, and those of the body. All others
 * are dropped, first of all cookies and credentials of the console.
 */
export function forwardedHeaders(sent: Headers): ForwardedHeaders | Refusal {
  const headers: Headers = {}
  let host: string | undefined
  let count = 0
  for (const name of plainHeaders) {
    const value = sent[name]
    if (typeof value === 'string') headers[name] = value
  }
  for (const [sentName, value] of Object.entries(sent)) {
    if (!sentName.startsWith(headerPrefix)) continue
    const name = sentName.slice(headerPrefix.length)
    count += 1
    if (count > maxHeaders) return refusal(400, `more than ${maxHeaders} ${headerPrefix} headers`)
    if (typeof value !== 'string' || !fieldValue.test(value))
      return refusal(400, `${sentName} must be a valid field value`)
    if (name === 'host') host = value
    else if (isForwardable(name)) headers[name] = value
    else return refusal(400, `${sentName.slice(0, 200)} cannot be forwarded`)
  }
  return { kind: 'headers', headers, host }
}

function isForwardable(name: string): boolean {
  if (!isToken(name) || reservedNames.has(name) || isHopByHop(name)) return false
  return !reservedPrefixes.some((prefix) => name.startsWith(prefix))
}
