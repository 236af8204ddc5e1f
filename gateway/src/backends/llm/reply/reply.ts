import { isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { ObjectCall } from '../batches/object-call.ts'
import { convertObjectCall } from '../batches/object-reply.ts'
import { recordObject } from '../lists/record-object.ts'
import type { Attempt } from '../request/call.ts'
import { convertError } from './error-reply.ts'
import { convertObject } from './object-reply.ts'
import { filterHeaders, type ReplyOptions } from './reply-body.ts'
import { convertStream } from './stream-reply.ts'
import { convertTranscript, isPlainTranscript } from './transcript-reply.ts'

/**
 * Converts a provider's response to the client's: unchanged bytes within one API, translated between two,
 * with usage recorded in both cases. Throws `GatewayError` for an invalid response before the client receives
 * any of it.
 */
export function convertReply(attempt: Attempt, reply: Reply, options: ReplyOptions): Reply | Promise<Reply> {
  const { endpoint } = attempt.call
  if (reply.status < 200 || reply.status > 299) return convertError(attempt, reply, options)
  const { object } = attempt.call
  if (object !== undefined) return convertRecorded(attempt, object, reply, options)
  if (endpoint === 'passthrough') {
    attempt.succeeded = true
    return { ...reply, headers: filterHeaders(reply.headers) }
  }
  if (isEventStream(reply.headers)) return convertStream(attempt, endpoint, reply, options)
  if (endpoint === 'speech') return convertAudio(attempt, reply)
  if (isPlainTranscript(endpoint, reply)) return convertTranscript(attempt, reply, options)
  return convertObject(attempt, endpoint, reply, options)
}

async function convertRecorded(
  attempt: Attempt,
  object: ObjectCall,
  reply: Reply,
  options: ReplyOptions,
): Promise<Reply> {
  const converted = await convertObjectCall(attempt, object, reply, options)
  await recordObject(attempt, object, converted, options)
  return converted
}

/** Audio is streamed through. It reports no usage. */
function convertAudio(attempt: Attempt, reply: Reply): Reply {
  attempt.succeeded = true
  return { ...reply, headers: filterHeaders(reply.headers) }
}
