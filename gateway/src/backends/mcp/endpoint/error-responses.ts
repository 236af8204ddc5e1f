import type { GatewayError, GatewayErrorCode } from '../../../lib/gateway-error.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { callTargetOf } from '../message/items.ts'
import { errorText, internalError, invalidParams, sessionNotFound } from '../message/json-rpc.ts'
import type { Message, TargetFailure } from '../message/message.ts'
import { readTargetRefusal } from '../targets/target-refusal.ts'

/** Why a request is refused: an HTTP status, a code for the log, and what the client is told. */
export type McpRefusal = {
  status: number
  reason: string
  message: string
  /** JSON-RPC code and data, where the message is answered as JSON-RPC. */
  code?: number
  data?: object
}

/** The request a failure answers, with its id as JSON. */
export type FailedRequest = { idText: string; json: Message }

/** A refusal as JSON-RPC error where the request's id is known or the body itself is at fault, as plain text elsewhere. */
export function refuseMcp(exchange: Exchange, refusal: McpRefusal, idText?: string): Reply {
  const { status, reason, message, code = internalError, data } = refusal
  exchange.log.refusedBy ??= `mcp: ${reason}`
  return idText === undefined
    ? textReply(status, `mcp: ${message}`)
    : jsonReply(status, errorText(idText, code, message, data))
}

/** The reply for what a target failed with before anything was sent. */
export function replyToFailure(
  exchange: Exchange,
  failure: TargetFailure,
  asked: FailedRequest | undefined,
): Reply {
  if (failure.kind === 'reply') {
    exchange.log.refusedBy ??= 'mcp: target'
    return failure.reply
  }
  if (failure.kind === 'error') exchange.log.failure ??= failure.error
  const { status, reason, code, message } = describeFailure(failure, asked)
  return refuseMcp(exchange, { status, reason, code, message }, asked?.idText)
}

/**
 * Reply to a failed request of a session-based revision: status 200 with the JSON-RPC error, because client libraries end their
 * session at any other status. HTTP statuses remain for HTTP matters: an ended session (404), and a target's challenge for
 * credentials, which the client has to answer.
 */
export function replyWithJsonRpcError(
  exchange: Exchange,
  failure: TargetFailure,
  asked: FailedRequest,
): Reply {
  if (failure.kind === 'ended' || isChallenge(failure)) return replyToFailure(exchange, failure, asked)
  if (failure.kind === 'error') exchange.log.failure ??= failure.error
  exchange.log.refusedBy ??= `mcp: ${describeFailure(failure, asked).reason}`
  return jsonReply(200, failureText(failure, asked))
}

/**
 * Reply to a notification or response that was not delivered. JSON-RPC has no answer to one-way messages, and client libraries
 * end their session at a 4xx or 5xx: accepted, with the reason in the access log.
 */
export function replyToUndelivered(exchange: Exchange, failure: TargetFailure): Reply {
  if (failure.kind === 'ended' || isChallenge(failure)) return replyToFailure(exchange, failure, undefined)
  if (failure.kind === 'error') exchange.log.failure ??= failure.error
  exchange.log.refusedBy ??= `mcp: ${describeFailure(failure, undefined).reason}`
  return accepted()
}

/** Reply to a message without an answer (202). */
export function accepted(): Reply {
  return { status: 202, headers: {}, body: undefined }
}

/** The JSON-RPC error that replaces the response to a request. */
export function failureText(failure: TargetFailure, asked: FailedRequest): string {
  const { code, message } = describeFailure(failure, asked)
  if (failure.kind !== 'reply') return errorText(asked.idText, code, message)
  const refusal = readTargetRefusal(failure.reply, asked.json.value['id'])
  return refusal.kind === 'error'
    ? `{"jsonrpc":"2.0","id":${asked.idText},"error":${refusal.text}}`
    : errorText(asked.idText, code, message, refusal.data)
}

/** A refusal for want of credentials. */
function isChallenge(failure: TargetFailure): boolean {
  if (failure.kind !== 'reply') return false
  const { status, headers } = failure.reply
  return status === 401 || (status === 403 && headers['www-authenticate'] !== undefined)
}

function describeFailure(failure: TargetFailure, asked: FailedRequest | undefined) {
  switch (failure.kind) {
    case 'error': {
      const { error } = failure
      return { status: statusOf(error), reason: error.code, code: internalError, message: error.message }
    }
    case 'reply': {
      const message = `the target answered with status ${failure.reply.status}`
      return { status: failure.reply.status, reason: 'target', code: internalError, message }
    }
    case 'ended':
      return {
        status: 404,
        reason: 'session ended',
        code: sessionNotFound,
        message: `Session ended: ${failure.reason}`,
      }
    case 'unknown': {
      const message = `Unknown ${failure.item}: ${(asked && callTargetOf(asked.json.value)?.name) ?? ''}`
      return { status: 400, reason: `unknown ${failure.item}`, code: invalidParams, message }
    }
    case 'refused': {
      const { status, code, message } = failure
      return { status, reason: 'refused', code, message }
    }
  }
}

function statusOf({ code }: GatewayError): number {
  return statusByCode[code] ?? 502
}

const statusByCode: Partial<Record<GatewayErrorCode, number>> = {
  upstream_connect: 503,
  upstream_timeout: 504,
  request_too_large: 413,
  request_aborted: 400,
  bad_request: 400,
  internal: 500,
}

function textReply(status: number, text: string): Reply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: Buffer.from(text) }
}

function jsonReply(status: number, text: string): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) }
}

/** `ending` is the reason why the session ended, where it is known. */
export function refuseUnknownSession(
  exchange: Exchange,
  idText: string | undefined,
  ending: string | undefined,
): Reply {
  const message = ending === undefined ? 'Session not found' : `Session not found: ${ending}`
  return refuseMcp(
    exchange,
    { status: 404, reason: 'unknown session', code: sessionNotFound, message },
    idText,
  )
}

export const sessionEnded: TargetFailure = { kind: 'ended', reason: 'it was closed' }
