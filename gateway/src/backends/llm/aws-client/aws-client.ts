import { isJsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { isSource, sourceOf } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { awsErrorType } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { requestPath } from '../attempt/provider-request.ts'
import { bedrockCallIn } from '../request/bedrock-path.ts'
import { eventStreamBody } from './event-stream-body.ts'

/**
 * The reply for a client of Amazon Bedrock, after all policies, which read server-sent events: streams are
 * binary event streams, and errors have AWS's shape.
 */
export function toAwsReply(exchange: Exchange, reply: Reply): Reply {
  const { status, headers, body } = reply
  if (status >= 400) return toAwsError(reply)
  if (status < 200 || status > 299 || !isEventStream(headers)) return reply
  const form = bedrockCallIn(requestPath(exchange))?.endpoint === 'converse' ? 'converse' : 'invoke'
  return {
    ...reply,
    headers: { ...headers, 'content-type': 'application/vnd.amazon.eventstream' },
    body: eventStreamBody(sourceOf(body), form),
  }
}

/** Errors of other APIs and of guards. A header has the type, so that SDKs throw its exception. */
function toAwsError(reply: Reply): Reply {
  const { status, headers, body } = reply
  const type = headers['x-amzn-errortype'] ?? awsErrorType(status)
  const typed: Headers = { ...headers, 'x-amzn-errortype': type }
  if (isSource(body)) return { ...reply, headers: typed }
  const text = body === undefined ? '' : Buffer.from(body).toString()
  const object = parseJsonObject(text)
  if (typeof object?.['message'] === 'string') return { ...reply, headers: typed }
  const error = isJsonObject(object?.['error']) ? object['error'] : undefined
  const message = typeof error?.['message'] === 'string' ? error['message'] : text
  const { 'content-length': _, ...others } = typed
  return {
    ...reply,
    headers: { ...others, 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ message })),
  }
}
