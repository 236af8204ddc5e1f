import type { GatewayError, GatewayErrorCode } from '../../../lib/gateway-error.ts'
import type { JsonValue } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { callTargetOf } from '../message/items.ts'
import {
  badRequest,
  errorText,
  internalError,
  invalidParams,
  sessionNotFound,
  unsupportedVersion,
} from '../message/json-rpc.ts'
import type { Message, TargetFailure } from '../message/message.ts'
import { readTargetRefusal } from '../targets/target-refusal.ts'

/** Refusal of an MCP request: HTTP status, reason for the log, message for the client. */
export type McpRefusal = {
  status: number
  reason: string
  message: string
  /** JSON-RPC code and data, for JSON-RPC replies. */
  code?: number
  data?: object | JsonValue | undefined
}

/** Failed request with its id as JSON text. */
export type FailedRequest = { idText: string; json: Message }

/**
 * Reply to a refused request: a JSON-RPC error if the id is known or the body is invalid, otherwise plain
 * text.
 */
export function refuseMcp(exchange: Exchange, refusal: McpRefusal, idText?: string): Reply {
  const { status, reason, message, code = internalError, data } = refusal
  exchange.log.refusedBy ??= `mcp: ${reason}`
  return idText === undefined
    ? textReply(status, `mcp: ${message}`)
    : jsonReply(status, errorText(idText, code, message, data))
}

/** Reply to a target failure before the first message. */
export function replyToFailure(
  exchange: Exchange,
  failure: TargetFailure,
  request: FailedRequest | undefined,
): Reply {
  if (failure.kind === 'reply') {
    exchange.log.refusedBy ??= 'mcp: target'
    return failure.reply
  }
  if (failure.kind === 'error') exchange.log.failure ??= failure.error
  return refuseMcp(exchange, describeFailure(failure, request), request?.idText)
}

/**
 * Reply to a failed request of a session-based revision: status 200 with the JSON-RPC error, because client
 * libraries end their session for other statuses. Ended sessions (404) and authentication challenges of a
 * target retain their HTTP status.
 */
export function replyWithJsonRpcError(
  exchange: Exchange,
  failure: TargetFailure,
  request: FailedRequest,
): Reply {
  if (failure.kind === 'ended' || isChallenge(failure)) return replyToFailure(exchange, failure, request)
  if (failure.kind === 'error') exchange.log.failure ??= failure.error
  exchange.log.refusedBy ??= `mcp: ${describeFailure(failure, request).reason}`
  return jsonReply(200, failureText(failure, request))
}

/**
 * Reply to an undelivered notification or response. JSON-RPC has no response to one-way messages, and client
 * libraries end their session at 4xx or 5xx: 202, with the reason in the access log.
 */
export function replyToUndelivered(exchange: Exchange, failure: TargetFailure): Reply {
  if (failure.kind === 'ended' || isChallenge(failure)) return replyToFailure(exchange, failure, undefined)
  if (failure.kind === 'error') exchange.log.failure ??= failure.error
  exchange.log.refusedBy ??= `mcp: ${describeFailure(failure, undefined).reason}`
  return accepted()
}

/** Reply to a message without a response (202). */
export function accepted(): Reply {
  return { status: 202, headers: {}, body: undefined }
}

/** JSON text of the error response to a failed request. */
export function failureText(failure: TargetFailure, request: FailedRequest): string {
  const { code, message, data } = describeFailure(failure, request)
  if (failure.kind !== 'reply') return errorText(request.idText, code, message, data)
  const refusal = readTargetRefusal(failure.reply, request.json.value['id'])
  return refusal.kind === 'error'
    ? `{"jsonrpc":"2.0","id":${request.idText},"error":${refusal.text}}`
    : errorText(request.idText, code, message, refusal.data)
}

/** Whether the failure is an authentication challenge. */
function isChallenge(failure: TargetFailure): boolean {
  if (failure.kind !== 'reply') return false
  const { status, headers } = failure.reply
  return status === 401 || (status === 403 && headers['www-authenticate'] !== undefined)
}

function describeFailure(
  failure: TargetFailure,
  request: FailedRequest | undefined,
): McpRefusal & { code: number } {
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
      const message = `Unknown ${failure.item}: ${(request && callTargetOf(request.json.value)?.name) ?? ''}`
      return { status: 400, reason: `unknown ${failure.item}`, code: invalidParams, message }
    }
    case 'refused': {
      const { status, code, message, data } = failure
      return { status, reason: 'refused', code, message, data }
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
  // Not 401: clients would start an authorization, which changes nothing here.
  credential_missing: 403,
  credential_refused: 403,
  credential_forbidden: 403,
  internal: 500,
}

function textReply(status: number, text: string): Reply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: Buffer.from(text) }
}

function jsonReply(status: number, text: string): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) }
}

/** Reply for an unknown session. `ending` is the reason for its end, if known. */
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

/** Reply for a message without the session that it requires. */
export function refuseWithoutSession(exchange: Exchange, idText: string | undefined): Reply {
  const message = 'the mcp-session-id header is missing'
  return refuseMcp(exchange, { status: 400, reason: 'no session', code: badRequest, message }, idText)
}

/** Reply for an unsupported revision. `data` is the data of the JSON-RPC error. */
export function refuseRevision(
  exchange: Exchange,
  data: { requested: string | undefined; supported: readonly string[] },
  idText: string | undefined,
): Reply {
  const message = `unsupported protocol version, supported are ${data.supported.join(', ')}`
  const refusal = { status: 400, reason: 'protocol version', message, code: unsupportedVersion, data }
  return refuseMcp(exchange, refusal, idText)
}
