import { GatewayError } from '../../../lib/gateway-error.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { isLarge } from '../../../lib/json/read.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { hideCredentials } from '../../../upstream/hidden-credential/hidden-credential.ts'
import { announcedWaitMs } from '../models/eviction/announced-wait.ts'
import type { Attempt } from '../request/call.ts'
import { hasErrorShape, readUpstreamError, toErrorBody } from '../translate/upstream-error.ts'
import { endpointOf, recordObject } from './record.ts'
import { cancelReply, filterDecodedHeaders, type ReplyOptions, readDecoded } from './reply-body.ts'
import { delayIn, withDelay } from './retry-delay.ts'

/**
 * Converts a provider's error response; its status is preserved. JSON in the shape of the client's API is
 * forwarded, JSON of other shapes is translated, and other bodies are replaced. The time until the next
 * attempt that the provider announces, in headers of its own or in the body, becomes `retry-after`. Throws
 * `upstream_invalid` for redirects.
 */
export async function convertError(
  attempt: Attempt,
  reply: Reply,
  { maxReplyBytes, context }: ReplyOptions,
): Promise<Reply> {
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
  const object = recordError(attempt, bytes)
  announceWait(headers, { status, object, now: context.clock.now() })
  const { errorBody: ownBody } = attempt.candidate.target.provider
  const { errorFormat } = exchange
  const text = bytes.toString()
  const own = object && ownBody?.(endpointOf(attempt), status, text)
  const isOwn = object !== undefined && !translation && own === undefined
  if (isOwn && hasErrorShape(errorFormat, object)) return { status, headers, body: bytes }
  headers['content-type'] = 'application/json'
  if (object !== undefined) {
    const converted = translation
      ? translation.error(status, own === undefined ? text : JSON.stringify(own))
      : (own ?? toErrorBody(errorFormat, readUpstreamError(status, text)))
    const isGoogle = errorFormat === 'google'
    const complete = isGoogle ? withDelay(converted, firstHeader(headers, 'retry-after')) : converted
    return { status, headers, body: Buffer.from(JSON.stringify(complete)) }
  }
  const unreadable = { status, code: 'upstream_error', message: `upstream answered with status ${status}` }
  return { status, headers, body: Buffer.from(JSON.stringify(toErrorBody(errorFormat, unreadable))) }
}

/** Sets `retry-after` where clients wait: SDKs read no other announcement of all vendors. */
function announceWait(
  headers: Headers,
  { status, object = {}, now }: { status: number; object: JsonObject | undefined; now: number },
): void {
  if ((status !== 429 && status < 500) || headers['retry-after'] !== undefined) return
  const waitMs = announcedWaitMs(headers, now)
  const wait = waitMs === undefined ? delayIn(object) : String(Math.ceil(waitMs / 1000))
  if (wait !== undefined) headers['retry-after'] = wait
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

/** Reads an error that is a JSON object, and records its usage and model. Undefined for other errors. */
export function recordError(attempt: Attempt, bytes: Buffer): JsonObject | undefined {
  const object = isLarge(bytes) ? undefined : parseJsonObject(bytes.toString())
  const endpoint = endpointOf(attempt)
  if (object !== undefined && endpoint !== 'passthrough') recordObject(attempt, endpoint, object)
  return object
}
