import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { createChunkWriter } from '../chat-chunk.ts'
import { parseExactObject } from '../exact-json.ts'
import { createStreamBudget } from '../limits.ts'
import { countsFromResponses, toChatUsage } from '../token-counts.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import {
  invalidResponse,
  readStreamError,
  toErrorBody,
  truncatedStream,
  type UpstreamError,
} from '../upstream-error.ts'
import { createDeltas } from './deltas.ts'
import { completionHead, failureOf, toFinishReason } from './reply.ts'
import type { Delta } from './texts.ts'

/** Translates the events of a streamed response to chunks of a chat completion. */
export function responseStreamToChunks(context: TranslationContext): StreamTranslator {
  let state: StreamTranslator['state'] = 'open'
  let closed = false
  let writeChunk: ReturnType<typeof createChunkWriter> | undefined
  /** The complete response, whose end is written after its event, so that a truncated one is not complete. */
  let complete: JsonObject | undefined
  const deltas = createDeltas(createStreamBudget(), context)

  return {
    get state() {
      return state
    },
    event({ data }) {
      // Some servers end the stream like one of chat completions.
      if (state !== 'open' || data === '[DONE]') return []
      const event = parseExactObject(data)
      if (event === undefined) throw invalidResponse('an event of the stream is not a JSON object')
      switch (event.type) {
        case 'response.completed':
        case 'response.incomplete':
          return finish(event)
        case 'response.failed':
          state = 'failed'
          return [failure(failureOf(responseIn(event)))]
        case 'error':
          state = 'failed'
          return [failure(readStreamError(event))]
        default:
          return [...start(event), ...deltas.read(event).map(toChunk)]
      }
    },
    end() {
      if (closed || state === 'failed') return []
      closed = true
      if (complete === undefined) return [failure(truncatedStream)]
      const usage = toChatUsage(countsFromResponses(complete.usage))
      const finishReason = toFinishReason(complete, deltas.hasCalls)
      return [
        chunk({ choices: [choice({}, finishReason)] }),
        ...(context.includeUsage ? [chunk({ choices: [], usage })] : []),
        { data: '[DONE]' },
      ]
    },
  }

  function start(event: JsonObject): SseEvent[] {
    if (writeChunk !== undefined) return []
    writeChunk = createChunkWriter(completionHead(responseIn(event), context), context)
    return [toChunk({ fields: { role: 'assistant', content: '', refusal: null } })]
  }

  function finish(event: JsonObject): SseEvent[] {
    const begun = start(event)
    complete = responseIn(event)
    state = 'ended'
    return begun
  }

  function toChunk({ fields, logprobs }: Delta): SseEvent {
    return chunk({ choices: [choice(fields, null, logprobs)] })
  }

  function chunk(content: JsonObject): SseEvent {
    if (writeChunk === undefined) throw invalidResponse('the stream has no events')
    return writeChunk(content)
  }
}

function responseIn({ response }: JsonObject): JsonObject {
  return isJsonObject(response) ? response : {}
}

function failure(error: UpstreamError): SseEvent {
  return { data: JSON.stringify(toErrorBody('openai', error)) }
}

function choice(delta: JsonObject, finishReason: string | null, logprobs: JsonValue = null): JsonObject {
  return { index: 0, delta, logprobs, finish_reason: finishReason }
}
