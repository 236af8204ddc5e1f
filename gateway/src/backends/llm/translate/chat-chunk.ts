import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import { objectOf } from './stream-event.ts'
import type { StreamTranslator, TranslationContext } from './translate.ts'
import { invalidResponse, readStreamError, truncatedStream, type UpstreamError } from './upstream-error.ts'

/** The part of a translation of chunks that depends on the API of the client. */
export type ChunkReader = {
  /** Events of a chunk. */
  read(chunk: JsonObject, event: SseEvent): SseEvent[]
  /** Whether all choices have a finish reason. */
  isComplete(): boolean
  /** The events after the end marker. */
  close(): SseEvent[]
  failure(error: UpstreamError): SseEvent
}

/**
 * Translates the chunks of a streamed chat completion. Throws `GatewayError('upstream_invalid')` for other
 * data, and for an end marker before the end of the answer.
 */
export function createChunkTranslator({ read, isComplete, close, failure }: ChunkReader): StreamTranslator {
  let state: StreamTranslator['state'] = 'open'
  let isClosed = false
  return {
    get state() {
      return state
    },
    event(event) {
      if (state !== 'open') return []
      if (!('json' in event) && event.data === '[DONE]') {
        if (!isComplete()) throw invalidResponse('the stream ended before the answer did')
        state = 'ended'
        return []
      }
      const chunk = objectOf(event)
      if (chunk === undefined) throw invalidResponse('an event of the stream is not a JSON object')
      const error = chunkError(event, chunk)
      if (error === undefined) return read(chunk, event)
      state = 'failed'
      return [failure(error)]
    },
    end() {
      if (isClosed || state === 'failed') return []
      isClosed = true
      return state === 'ended' ? close() : [failure(truncatedStream)]
    },
  }
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
function chunkError({ event }: SseEvent, chunk: JsonObject): UpstreamError | undefined {
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
