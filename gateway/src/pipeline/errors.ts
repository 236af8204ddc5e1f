import { GatewayError, type GatewayErrorCode } from '../lib/gateway-error.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { ErrorFormat, Exchange } from './exchange.ts'
import type { LlmApi } from './llm-message.ts'

/** An error response of the gateway itself. The client receives `message` and `code`. */
export type Refusal = {
  status: number
  /** Stable machine-readable code, for example `model_not_found`. */
  code: string
  message: string
  /** The offending field of the request, in OpenAI's `param`. */
  param?: string
  headers?: Record<string, string>
}

/** Builds the reply for a refusal in the error shape of the matched route. */
export function refuse(exchange: Exchange, refusal: Refusal): Reply {
  exchange.log.refusedBy ??= refusal.code
  exchange.log.errorCode ??= refusal.code
  const { contentType, body } = errorBody(exchange.errorFormat, refusal, exchange.requestId)
  return {
    status: refusal.status,
    headers: {
      'content-type': contentType,
      ...(exchange.errorFormat === 'aws' ? { 'x-amzn-errortype': awsErrorType(refusal.status) } : undefined),
      ...refusal.headers,
    },
    body: Buffer.from(body),
  }
}

/** Maps a thrown error to a reply. The cause is logged, never sent. */
export function replyToError(exchange: Exchange, error: unknown): Reply {
  exchange.log.failure ??= error
  if (!(error instanceof GatewayError)) {
    return refuse(exchange, { status: 500, code: 'internal', message: 'internal error' })
  }
  const { code, message } = error
  return refuse(exchange, { status: statusByCode[code], code, message, headers: headersByCode[code] ?? {} })
}

/** Formats a refusal for a client API; also the payload of terminal error events of streams. */
export function errorBody(
  format: ErrorFormat,
  refusal: Refusal,
  requestId?: string,
): { contentType: string; body: string } {
  switch (format) {
    case 'text':
      return { contentType: 'text/plain; charset=utf-8', body: refusal.message }
    case 'openai':
      return { contentType: 'application/json', body: JSON.stringify(openAiError(refusal)) }
    case 'anthropic':
      return { contentType: 'application/json', body: JSON.stringify(anthropicError(refusal)) }
    case 'cohere':
      return { contentType: 'application/json', body: JSON.stringify(cohereError(refusal, requestId)) }
    case 'google':
      return { contentType: 'application/json', body: JSON.stringify(googleError(refusal)) }
    case 'aws':
      return { contentType: 'application/json', body: JSON.stringify(awsError(refusal)) }
  }
}

/** The error event that terminates a stream, in the format of the client API. */
export function terminalEvent(
  api: LlmApi | undefined,
  format: ErrorFormat,
  refusal: Pick<Refusal, 'status' | 'code' | 'message'>,
): string {
  const { code, message } = refusal
  if (api === 'responses') {
    return `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param: null, sequence_number: 0 })}\n\n`
  }
  if (format === 'aws') return awsException(refusal)
  if (format === 'cohere') return cohereEnd(message)
  const event = format === 'anthropic' ? 'event: error\n' : ''
  return `${event}data: ${errorBody(format, refusal).body}\n\n`
}

function openAiError({ status, code, message, param }: Refusal) {
  const type = status >= 500 ? 'server_error' : status === 429 ? 'rate_limit_error' : 'invalid_request_error'
  return { error: { message, type, param: param ?? null, code } }
}

/** https://docs.cohere.com/reference/errors; `code` is an addition. */
function cohereError({ message, code }: Refusal, id: string | undefined) {
  return { ...(id === undefined ? undefined : { id }), message, code }
}

/** https://docs.cohere.com/v2/reference/chat-stream: the last event of a stream has the error. */
function cohereEnd(error: string): string {
  const data = { type: 'message-end', delta: { error, finish_reason: 'ERROR' } }
  return `event: message-end\ndata: ${JSON.stringify(data)}\n\n`
}

/** https://cloud.google.com/apis/design/errors */
function googleError({ status, code, message, param, headers }: Refusal) {
  const metadata = param === undefined ? {} : { metadata: { param } }
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code, domain: 'tollgate' }
  const delay = headers?.['retry-after']
  const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${delay}s` }
  const details = [{ ...info, ...metadata }, ...(delay === undefined ? [] : [retry])]
  return { error: { code: status, message, status: googleStatus(status), details } }
}

function googleStatus(status: number): string {
  return googleStatuses[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
}

const googleStatuses: Record<number, string> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** The type is a header; `code` is an addition. https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html */
function awsError({ message, code }: Refusal) {
  return { message, code }
}

/** The exception in a stream before its encoding as a binary event stream; names are in lower camel case. */
function awsException({ status, message }: Pick<Refusal, 'status' | 'message'>): string {
  const name = awsErrorType(status)
  const type = name.charAt(0).toLowerCase() + name.slice(1)
  return `event: exception\ndata: ${JSON.stringify({ type, message })}\n\n`
}

/** Name of an error of Amazon Bedrock Runtime by status. */
export function awsErrorType(status: number): string {
  return awsTypes[status] ?? (status >= 500 ? 'InternalServerException' : 'ValidationException')
}

const awsTypes: Record<number, string> = {
  401: 'AccessDeniedException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  503: 'ServiceUnavailableException',
  504: 'ModelTimeoutException',
  529: 'ServiceUnavailableException',
}

function anthropicError({ status, message }: Refusal) {
  return { type: 'error', error: { type: anthropicErrorType(status), message } }
}

/** https://docs.anthropic.com/en/api/errors */
function anthropicErrorType(status: number): string {
  if (status === 529) return 'overloaded_error'
  if (status >= 500) return 'api_error'
  return anthropicTypes[status] ?? 'invalid_request_error'
}

const anthropicTypes: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

/** RFC 9110 section 15.5.2: a 401 response has a challenge. */
const headersByCode: Partial<Record<GatewayErrorCode, Record<string, string>>> = {
  overloaded: { 'retry-after': '1' },
  credential_missing: { 'www-authenticate': 'Bearer' },
  credential_refused: { 'www-authenticate': 'Bearer error="invalid_token"' },
}

const statusByCode: Record<GatewayErrorCode, number> = {
  upstream_connect: 503,
  upstream_timeout: 504,
  upstream_reset: 502,
  upstream_invalid: 502,
  upstream_too_large: 502,
  request_too_large: 413,
  overloaded: 503,
  request_aborted: 400,
  unsupported_encoding: 415,
  bad_request: 400,
  credential_missing: 401,
  credential_refused: 401,
  credential_forbidden: 403,
  credential_unavailable: 502,
  internal: 500,
}
