import { randomUUID } from 'node:crypto'
import { isJsonObject, type JsonValue, parseJsonObject } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'

/** An error of the gateway for the client. */
export type RealtimeError = {
  readonly type: 'invalid_request_error' | 'rate_limit_error' | 'server_error' | 'permission_error'
  readonly code: string
  readonly message: string
  readonly param?: string | undefined
}

/** The `error` event of an error; `eventId` is that of the client's event, if it has one. */
export function errorEvent(
  { type, code, message, param }: RealtimeError,
  eventId: JsonValue | undefined,
): Buffer {
  const error = { type, code, message, param: param ?? null, event_id: eventIdOf(eventId) ?? null }
  return Buffer.from(JSON.stringify({ type: 'error', event_id: `event_${randomUUID()}`, error }))
}

/** A usable `event_id` of an event. */
export function eventIdOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= 512 ? value : undefined
}

/** The error of the reply of a policy: its JSON, or its text. */
export function errorOf({ status, body }: Reply): RealtimeError {
  const text = body instanceof Uint8Array ? Buffer.from(body).toString() : ''
  const error = parseJsonObject(text)?.['error']
  const type = status === 429 ? 'rate_limit_error' : status >= 500 ? 'server_error' : 'permission_error'
  if (!isJsonObject(error)) {
    const code = status === 429 ? 'rate_limit_exceeded' : status >= 500 ? 'internal' : 'forbidden'
    return { type, code, message: text === '' ? 'the request was refused' : text }
  }
  const { code, message } = error
  return { type, code: textOr(code, 'refused'), message: textOr(message, 'the request was refused') }
}

/** The error of a rejection by guards; without a reply, they would change content that cannot be changed. */
export function rejectionOf(reply: Reply | undefined): RealtimeError {
  const body = reply?.body instanceof Uint8Array ? Buffer.from(reply.body).toString() : ''
  const message = body === '' ? 'the content was rejected by a guardrail' : body
  return { type: 'invalid_request_error', code: 'guardrail_intervention', message }
}

function textOr(value: JsonValue | undefined, fallback: string): string {
  return typeof value === 'string' ? value : fallback
}
