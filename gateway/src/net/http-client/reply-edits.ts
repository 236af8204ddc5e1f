import { isSource } from '../http/body.ts'
import type { Headers } from '../http/headers.ts'
import type { Reply } from './send.ts'

/** Statuses without a body (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304])

/** Whether a final response with this status may have a body. */
export function mayHaveBody(status: number): boolean {
  return !withoutBody.has(status)
}

/** Whether a reply is the start of another protocol, which has neither a status nor a body to edit. */
export function isUpgrade({ status, tunnel }: Reply): boolean {
  return status === 101 || tunnel !== undefined
}

/**
 * Replaces the status of a final response, in place; false for an invalid status and for upgrades. A body
 * that the status does not permit is discarded.
 */
export function setReplyStatus(reply: Reply, status: number): boolean {
  if (!Number.isInteger(status) || status < 200 || status > 599 || isUpgrade(reply)) return false
  reply.status = status
  if (!mayHaveBody(status)) {
    if (isSource(reply.body)) reply.body.cancel()
    reply.body = undefined
    withoutFields(reply.headers, aboutBody)
  }
  return true
}

/** Fields about the bytes of the replaced body (RFC 9110 sections 8.4, 8.6 and 14.4, RFC 9530). */
const aboutBytes = [
  'content-length',
  'content-encoding',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
  'content-range',
  'accept-ranges',
  'trailer',
]
const aboutBody = [...aboutBytes, 'content-type']

/**
 * Replaces the body of a response, in place; false if its status permits none, and for upgrades. Fields about
 * the former bytes are removed, a strong validator becomes a weak one (RFC 9110 section 8.8.1);
 * `content-type` is unchanged, `content-length` follows from the bytes.
 */
export function replaceReplyBody(reply: Reply, bytes: Uint8Array): boolean {
  if (isUpgrade(reply) || !mayHaveBody(reply.status)) return false
  if (isSource(reply.body)) reply.body.cancel()
  reply.body = bytes.byteLength === 0 ? undefined : bytes
  markChangedBytes(reply.headers)
  return true
}

/** Removes the fields about bytes that are not sent. */
export function markChangedBytes(headers: Headers): void {
  withoutFields(headers, aboutBytes)
  const { etag } = headers
  if (typeof etag === 'string' && etag.startsWith('"')) headers['etag'] = `W/${etag}`
}

function withoutFields(headers: Headers, names: readonly string[]): void {
  for (const name of names) if (headers[name] !== undefined) delete headers[name]
}
