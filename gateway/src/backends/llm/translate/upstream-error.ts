import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { errorBody } from '../../../pipeline/errors.ts'
import type { ErrorFormat } from '../../../pipeline/exchange.ts'
import { mayBeTooLong, statesTooLong } from './context-error.ts'
import { parseExactObject } from './exact-json.ts'

/** An error reported by an upstream. */
export type UpstreamError = { status: number; message: string; code: string }

/** The error of a stream without its end marker. */
export const truncatedStream: UpstreamError = {
  status: 502,
  message: 'the upstream broke the stream off before its end',
  code: 'upstream_reset',
}

/** Maximum length of a forwarded error text. */
const maxMessageLength = 4000

/**
 * Reads an error response of either API or of servers with a similar one. A body that is not JSON (a proxy's
 * HTML page) is not forwarded.
 */
export function readUpstreamError(status: number, body: string): UpstreamError {
  const parsed = parseExactObject(body)
  const fallback = { status, message: `the upstream answered with status ${status}`, code: 'upstream_error' }
  return parsed === undefined ? fallback : { ...fallback, ...errorFields(parsed) }
}

/** Reads the error event that ends an upstream's stream. */
export function readStreamError(event: JsonObject): UpstreamError {
  const fields = errorFields(event)
  const status = (fields.code === undefined ? undefined : statusByType[fields.code]) ?? 500
  return {
    status,
    message: 'the upstream broke the stream off with an error',
    code: 'upstream_error',
    ...fields,
  }
}

function errorFields(body: JsonObject): { message?: string; code?: string } {
  const error = body.error
  const source = isJsonObject(error) ? error : body
  const message = typeof error === 'string' ? error : firstString(source.message, source.detail)
  const code = firstString(...[source.code, source.type, source.status].filter(isName))
  return {
    ...(message === undefined ? undefined : { message: message.slice(0, maxMessageLength) }),
    ...(code === undefined || code === 'error' ? undefined : { code: code.slice(0, 100) }),
  }
}

/** Names are codes for clients; numbers repeat the status, or differ from vendor to vendor. */
function isName(code: JsonValue | undefined): boolean {
  return typeof code === 'string' && !/^\d+$/.test(code)
}

function firstString(...values: (JsonValue | undefined)[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value !== '')
}

/** https://docs.anthropic.com/en/api/errors, and the equivalent codes of chat servers. */
const statusByType: Record<string, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  overloaded_error: 529,
  // https://cloud.google.com/apis/design/errors
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
}

/** The error in the shape of the client's API. */
export function toErrorBody(format: ErrorFormat, error: UpstreamError): JsonObject {
  return parseExactObject(errorBody(format, inTermsOf(format, error)).body) ?? {}
}

/** Codes and texts by which clients recognise errors that they handle. */
function inTermsOf(format: ErrorFormat, error: UpstreamError): UpstreamError {
  const { status, code, message } = error
  if (mayBeTooLong(status) && statesTooLong(code, message)) {
    if (format === 'openai') return { ...error, code: 'context_length_exceeded' }
    const isMarked = format !== 'anthropic' || message.startsWith(tooLong)
    return isMarked ? error : { ...error, message: `${tooLong}: ${message}` }
  }
  // The client's own credential is valid.
  if (status === 401) return { ...error, message: `${withoutStop(message)}: ${credentialAdvice}` }
  if (format !== 'openai') return error
  if (status === 429 && code !== 'insufficient_quota') return { ...error, code: 'rate_limit_exceeded' }
  return isUnknownModel(error) ? { ...error, code: 'model_not_found' } : error
}

/** Of the calls that the gateway makes, only the model can be unknown to a provider. */
function isUnknownModel({ status, code, message }: UpstreamError): boolean {
  if (code === 'invalid_model') return true
  return status === 404 && (/not_?found/i.test(code) || /\bmodel\b/i.test(message))
}

/** Clients with messages shorten the conversation at this text. */
const tooLong = 'prompt is too long'
const credentialAdvice = 'check the credential for the provider'

function withoutStop(message: string): string {
  return message.replace(/[.\s]+$/, '')
}

/** Whether the body of an error has the shape of an API. */
export function hasErrorShape(format: ErrorFormat, body: JsonObject): boolean {
  const { error } = body
  switch (format) {
    case 'openai':
      return isJsonObject(error) && typeof error.message === 'string'
    case 'anthropic':
      return body.type === 'error' && isJsonObject(error) && typeof error.type === 'string'
    case 'google':
      return isJsonObject(error) && typeof error.status === 'string'
    case 'cohere':
    case 'aws':
      return typeof body.message === 'string'
    case 'text':
      return true
  }
}

/** The failure of an upstream whose response violates its API. */
export function invalidResponse(problem: string): GatewayError {
  return new GatewayError('upstream_invalid', `the upstream's answer cannot be read: ${problem}`)
}
