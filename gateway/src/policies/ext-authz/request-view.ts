import { createHeaderFilter, type Headers } from '../../net/http/headers.ts'
import type { Exchange, Facts } from '../../pipeline/exchange.ts'
import { sentPath } from '../../pipeline/exchange.ts'
import { writeForwarded } from '../../upstream/forwarded.ts'
import { isWithheldHeader } from '../../upstream/withheld-headers.ts'

/** The beginning of a body. */
export type IncludedBody = { readonly bytes: Buffer; readonly isComplete: boolean }

/** A request as the service decides on it: a path, and the body as far as it is included. */
export type RequestView = {
  readonly exchange: Exchange
  /** Facts of the exchange with the path of the view. */
  readonly facts: Facts
  readonly body: IncludedBody | undefined
}

/** Path and query as they are forwarded so far. */
export function pathAndQuery({ exchange: { forwarding }, facts: { request } }: RequestView): string {
  return (forwarding?.path ?? sentPath(request)) + (forwarding?.query ?? request.query)
}

/** Method as it is forwarded so far. */
export function methodOf({ exchange: { forwarding }, facts: { request } }: RequestView): string {
  return forwarding?.method ?? request.method
}

/** Host as it is forwarded so far; that of the client if the upstream determines it. */
export function hostOf({ exchange: { forwarding }, facts: { request } }: RequestView): string {
  const host = forwarding?.host
  return host === undefined || host === 'client' ? request.host : host
}

/** Headers of clients that no service may trust are those that no upstream receives. */
const known = createHeaderFilter((name) => name === 'host' || name === 'expect' || isWithheldHeader(name))

/**
 * The headers of the client without accepted credentials, with the forwarding headers of the gateway and the
 * edits of earlier policies, such as the service of another scope.
 */
export function viewedHeaders({ exchange, facts }: RequestView): Headers {
  const headers = known(facts.request.headers)
  writeForwarded(headers, exchange)
  if (exchange.forwarding) for (const edit of exchange.forwarding.headerEdits) edit(headers)
  return headers
}

/**
 * Differences of the viewed request from the client's, as text: decisions are equal only for equal edits.
 * Undefined without edits.
 */
export function editsOfView(view: RequestView): string | undefined {
  const { exchange, facts } = view
  const { forwarding } = exchange
  if (forwarding === undefined) return undefined
  const { method, path, query, host } = forwarding
  const before = viewedHeaders({ ...view, exchange: { ...exchange, forwarding: undefined } })
  const after = viewedHeaders(view)
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const headers = [...names].filter((name) => String(before[name]) !== String(after[name])).sort()
  if (headers.length === 0 && (method ?? path ?? query ?? host) === undefined) return undefined
  const { request } = facts
  const pseudo = [method ?? request.method, path, query, host]
  return JSON.stringify([pseudo, headers.map((name) => [name, after[name]])])
}

/** Length of the body in bytes, -1 if unknown. */
export function bodySize({ exchange, facts, body }: RequestView): number {
  if (body?.isComplete === true) return body.bytes.byteLength
  if (exchange.body === undefined) return 0
  return declaredLength(facts.request.headers) ?? -1
}

/** A header value as text: UTF-8 if it is, else one character per byte. */
export function headerText(value: string | string[], name: string): string {
  const joined = typeof value === 'string' ? value : value.join(name === 'cookie' ? '; ' : ', ')
  if (!/[\x80-\xff]/.test(joined)) return joined
  const text = Buffer.from(joined, 'latin1').toString()
  return text.includes('\ufffd') ? joined : text
}

/** The declared length of a body; undefined with chunked coding. */
function declaredLength(headers: Headers): number | undefined {
  const length = headers['content-length']
  if (typeof length !== 'string' || headers['transfer-encoding'] !== undefined) return undefined
  return Number(length)
}
