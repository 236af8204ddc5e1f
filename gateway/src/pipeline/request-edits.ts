import { isToken } from '../lib/http-token.ts'
import { parseRequestTarget } from '../lib/request-target.ts'
import { type Body, type BodySource, isSource } from '../net/http/body.ts'
import { applyHeaderEdits, type HeaderEdit } from '../net/http/header-edits.ts'
import { isHost } from './client-address.ts'
import type { Exchange } from './exchange.ts'
import type { Forwarding } from './forwarding/forwarding.ts'

/** Pseudo-header of the forwarded request (RFC 9113 section 8.3.1). */
export type RequestPseudoHeader = ':method' | ':path' | ':authority' | ':scheme'

const pseudoHeaders: ReadonlySet<string> = new Set([':method', ':path', ':authority', ':scheme'])

/** Whether a name is a pseudo-header of requests. */
export function isRequestPseudoHeader(name: string): name is RequestPseudoHeader {
  return pseudoHeaders.has(name)
}

/** The forwarding changes of an exchange, created on first use. */
export function forwardingOf(exchange: Exchange): Forwarding {
  exchange.forwarding ??= {
    method: undefined,
    path: undefined,
    query: undefined,
    host: undefined,
    body: undefined,
    headerEdits: [],
  }
  return exchange.forwarding
}

/**
 * Records edits of the forwarded headers, after those of earlier policies. Names and values must be valid:
 * `isEditableHeader`, `isHeaderValue`. The client's request in `facts` is unchanged.
 */
export function editRequestHeaders(exchange: Exchange, edits: readonly HeaderEdit[]): void {
  if (edits.length === 0) return
  forwardingOf(exchange).headerEdits.push((headers) => applyHeaderEdits(headers, edits))
}

/** Longest path with query. */
const maxTargetLength = 16_384

/** Methods that are not forwarded by any backend. */
const refusedMethods: ReadonlySet<string> = new Set(['CONNECT', 'TRACE'])

/**
 * Records a pseudo-header of the forwarded request; false for an invalid value, which changes nothing.
 * `:path` includes the query and is normalised. `:authority` is the `host` header and does not select the
 * upstream; `:scheme` is `x-forwarded-proto`, because the scheme of the upstream is configured.
 */
export function setRequestPseudoHeader(
  exchange: Exchange,
  name: RequestPseudoHeader,
  value: string,
): boolean {
  switch (name) {
    case ':method':
      return setMethod(exchange, value)
    case ':path':
      return setPath(exchange, value)
    case ':authority':
      if (!isHost(value)) return false
      forwardingOf(exchange).host = value
      return true
    case ':scheme':
      if (value !== 'http' && value !== 'https') return false
      editRequestHeaders(exchange, [{ kind: 'set', name: 'x-forwarded-proto', value }])
      return true
  }
}

/** A response to HEAD has no body, so neither direction is replaced by another method. */
function setMethod(exchange: Exchange, value: string): boolean {
  const received = exchange.facts.request.method
  if (!isToken(value) || refusedMethods.has(value)) return false
  if ((value === 'HEAD') !== (received === 'HEAD') || exchange.upgrade !== undefined) return false
  forwardingOf(exchange).method = value
  return true
}

/** Paths that servers may interpret in several ways are invalid, as those of clients. */
function setPath(exchange: Exchange, value: string): boolean {
  if (value.length > maxTargetLength || !value.startsWith('/')) return false
  if (!/^[\x21-\x7e]+$/.test(value)) return false
  const target = parseRequestTarget(value)
  if (target === undefined || target.variants?.kind === 'unsafe') return false
  const forwarding = forwardingOf(exchange)
  forwarding.path = target.trailingSlash ? `${target.path}/` : target.path
  forwarding.query = target.query
  return true
}

/** Headers about the coded bytes, which are not forwarded (RFC 9110 section 8.4, RFC 9530). */
const aboutCoding = ['content-encoding', 'content-digest', 'repr-digest', 'digest', 'content-md5']

const withoutCoding: readonly HeaderEdit[] = aboutCoding.map((name) => ({ kind: 'remove', name }))

/** Records that `exchange.body` has no content coding, although the client's body has one. */
export function markDecodedBody(exchange: Exchange): void {
  const forwarding = forwardingOf(exchange)
  if (hasCoding(forwarding)) editRequestHeaders(exchange, withoutCoding)
  if (forwarding.body === 'recoded') forwarding.body = 'replaced'
  forwarding.body ??= 'decoded'
}

/**
 * Replaces the body of the forwarded request, without content coding. `content-length` follows from bytes;
 * `content-type` is unchanged. Upgrades have no body: false.
 */
export function replaceRequestBody(exchange: Exchange, body: Uint8Array | BodySource): boolean {
  if (exchange.upgrade !== undefined) return false
  const { body: former } = exchange
  // A replacement that derives from the client's body reads it.
  if (isSource(former) && !isSource(body)) former.cancel()
  exchange.body = !isSource(body) && body.byteLength === 0 ? undefined : body
  const forwarding = forwardingOf(exchange)
  if (hasCoding(forwarding)) editRequestHeaders(exchange, withoutCoding)
  forwarding.body = 'replaced'
  return true
}

/** Whether the forwarded body may have the content coding of the client's headers. */
export function hasCoding(forwarding: Pick<Forwarding, 'body'> | undefined): boolean {
  return forwarding?.body === undefined || forwarding.body === 'recoded'
}

/** Whether the forwarded body has the length of the client's body. */
export function hasClientLength(forwarding: Pick<Forwarding, 'body'> | undefined): boolean {
  return forwarding?.body === undefined || forwarding.body === 'decoded'
}

/**
 * Replaces the body of the forwarded request by one in the same content coding, derived from the former body.
 * `content-length` follows from bytes. Without effect on upgrades.
 */
export function replaceCodedBody(exchange: Exchange, body: Body): void {
  if (exchange.upgrade !== undefined) return
  exchange.body = body
  const forwarding = forwardingOf(exchange)
  forwarding.body = hasCoding(forwarding) ? 'recoded' : 'replaced'
}
