import { GatewayError } from '../../../lib/gateway-error.ts'
import { parseJsonObject } from '../../../lib/json/json.ts'
import { isLarge } from '../../../lib/json/read.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { errorBody } from '../../../pipeline/errors.ts'
import { hideCredentials } from '../../../upstream/hidden-credential/hidden-credential.ts'
import type { Attempt } from '../request/call.ts'
import { endpointOf, recordObject } from './record.ts'
import { cancelReply, filterDecodedHeaders, readDecoded } from './reply-body.ts'
import { delayIn, withDelay } from './retry-delay.ts'

/**
 * Converts a provider's error response; its status is preserved. JSON in the client's API is forwarded, JSON
 * of the other API is translated, and other bodies are replaced. Throws `upstream_invalid` for redirects.
 */
export async function convertError(attempt: Attempt, reply: Reply, maxReplyBytes: number): Promise<Reply> {
  const { exchange, call, translation } = attempt
  const { status } = reply
  if (status < 400) {
    cancelReply(reply)
    throw new GatewayError(
      'upstream_invalid',
      `upstream answered with status ${status}; redirects are not followed`,
    )
  }
  const bytes = hideCredentials(await readDecoded(reply, maxReplyBytes), attempt.credentials)
  const headers = filterDecodedHeaders(reply.headers)
  exchange.log.errorCode ??= 'upstream_error'
  if (call.endpoint === 'passthrough') return { status, headers, body: bytes }
  const isJson = recordError(attempt, bytes)
  if (isJson && status === 429) announceDelay(headers, bytes)
  const { errorBody: ownBody } = attempt.candidate.target.provider
  if (isJson && !translation && !ownBody) return { status, headers, body: bytes }
  headers['content-type'] = 'application/json'
  const text = bytes.toString()
  const converted = isJson
    ? (translation?.error(status, text) ?? ownBody?.(call.endpoint, status, text))
    : undefined
  if (converted !== undefined) {
    const isGoogle = exchange.errorFormat === 'google'
    const complete = isGoogle ? withDelay(converted, firstHeader(headers, 'retry-after')) : converted
    return { status, headers, body: Buffer.from(JSON.stringify(complete)) }
  }
  const refusal = { status, code: 'upstream_error', message: `upstream answered with status ${status}` }
  return { status, headers, body: Buffer.from(errorBody(exchange.errorFormat, refusal).body) }
}

/** Sets `retry-after`, which clients of all APIs read, to the delay in an error of Google. */
function announceDelay(headers: Headers, bytes: Buffer): void {
  if (headers['retry-after'] !== undefined || isLarge(bytes)) return
  const delay = delayIn(parseJsonObject(bytes.toString()) ?? {})
  if (delay !== undefined) headers['retry-after'] = delay
}

/** Reads the body of an error completely, so that it can be examined before it is converted. */
export async function readError(reply: Reply, maxReplyBytes: number): Promise<Reply & { body: Buffer }> {
  const { 'content-encoding': _, ...headers } = reply.headers
  return { status: reply.status, headers, body: await readDecoded(reply, maxReplyBytes) }
}

/** Most bytes of an error that are read for its usage. */
const maxErrorBytes = 64 * 1024

/**
 * Reads the error of a failed attempt and its usage, in parallel with the next one, so that failover does not
 * wait for it. Resolves without a body if it is not JSON, too large or incomplete.
 */
export async function readFailedAttempt(attempt: Attempt, reply: Reply): Promise<Reply> {
  const { 'content-encoding': _, ...headers } = reply.headers
  const { status } = reply
  const type = firstHeader(reply.headers, 'content-type')
  if (attempt.call.endpoint === 'passthrough' || type?.includes('json') !== true) {
    cancelReply(reply)
    return { status, headers, body: undefined }
  }
  attempt.unread = reply
  try {
    const body = await readDecoded(reply, maxErrorBytes)
    recordError(attempt, body)
    return { status, headers, body }
  } catch {
    return { status, headers, body: undefined }
  } finally {
    attempt.unread = undefined
  }
}

/** Records usage and model of an error that is a JSON object; false for other errors. */
export function recordError(attempt: Attempt, bytes: Buffer): boolean {
  const object = isLarge(bytes) ? undefined : parseJsonObject(bytes.toString())
  const endpoint = endpointOf(attempt)
  if (object !== undefined && endpoint !== 'passthrough') recordObject(attempt, endpoint, object)
  return object !== undefined
}
