import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import { objectOf } from './stream-event.ts'
import type { TranslationContext } from './translate.ts'
import { invalidResponse, readStreamError, type UpstreamError } from './upstream-error.ts'

/**
 * Reads an event of a streamed chat completion: a chunk, or undefined for the end marker. Throws
 * `GatewayError('upstream_invalid')` for other data, and for an end marker before the end of the answer.
 */
export function readChatChunk(event: SseEvent, isComplete: boolean): JsonObject | undefined {
  if (!('json' in event) && event.data === '[DONE]') {
    if (!isComplete) throw invalidResponse('the stream ended before the answer did')
    return undefined
  }
  const chunk = objectOf(event)
  if (chunk === undefined) throw invalidResponse('an event of the stream is not a JSON object')
  return chunk
}

/** A chunk whose text is written on demand, and whose object is read by a further translation. */
type ChunkEvent = {
  common: JsonObject
  /** Text of the common fields, without the closing brace. */
  start: string
  own: JsonObject
  readonly data: string
  readonly json: JsonObject
}

/** A prototype, because functions of each event would cost more than its text. */
const chunkEvent: ChunkEvent = {
  common: {},
  start: '{',
  own: {},
  get data() {
    return this.own.usage === undefined
      ? `${this.start},${JSON.stringify(this.own).slice(1)}`
      : JSON.stringify(this.json)
  },
  get json() {
    return { ...this.common, ...this.own }
  },
}

/**
 * Creates the chunks of one stream from their common fields and their own. The text of the common ones is
 * written once: 0.6 of the time for a chunk with a delta. As with OpenAI, all chunks but the last have a null
 * usage if usage was requested.
 */
export function createChunkWriter(
  given: JsonObject,
  { includeUsage }: Pick<TranslationContext, 'includeUsage'>,
): (own: JsonObject) => SseEvent {
  const common = includeUsage ? { ...given, usage: null } : given
  const start = JSON.stringify(common).slice(0, -1)
  return (own) => {
    const created: ChunkEvent = Object.create(chunkEvent)
    created.common = common
    created.start = start
    created.own = own
    return created
  }
}

/** The error that ends the stream, if the event is one. */
export function chunkError({ event }: SseEvent, chunk: JsonObject): UpstreamError | undefined {
  const isError = event === 'error' || (chunk.error !== undefined && chunk.error !== null)
  return isError ? readStreamError(chunk) : undefined
}

/**
 * The first choice of a chunk. Undefined for chunks without choices: those with the usage, and the results of
 * filters with which Azure begins. Throws `GatewayError('upstream_invalid')` if it is not an object.
 */
export function choiceOf({ choices }: JsonObject): JsonObject | undefined {
  const choice = Array.isArray(choices) ? choices[0] : undefined
  if (choice !== undefined && !isJsonObject(choice)) throw invalidResponse('a choice is not an object')
  return choice
}
