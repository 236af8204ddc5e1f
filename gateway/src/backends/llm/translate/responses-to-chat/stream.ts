import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { choiceOf, createChunkTranslator } from '../chat-chunk.ts'
import { fragmentsOf, indexOf, toolName } from '../limits.ts'
import { contentText, reasoningOf, stringOf } from '../messages-to-chat/reply.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import { invalidResponse, truncatedStream, type UpstreamError } from '../upstream-error.ts'
import { createOutput, type Output } from './output.ts'
import { annotationsOf, detailsOf, idSuffix, responseEnd, responseHead, toResponsesUsage } from './reply.ts'

/** Translates the chunks of a streamed chat completion to events of a response. */
export function chunkStreamToResponse(context: TranslationContext): StreamTranslator {
  let started: { head: JsonObject; output: Output } | undefined
  let finishReason: string | undefined
  let usage: JsonValue | undefined
  const events = createEvents()

  return createChunkTranslator({
    read(chunk, event) {
      readChunk(chunk, event)
      return events.take()
    },
    isComplete: () => finishReason !== undefined,
    close() {
      if (started === undefined) return [events.failure(truncatedStream)]
      const { head, output } = started
      const end = responseEnd(finishReason, output.close())
      const type = end.status === 'completed' ? 'response.completed' : 'response.incomplete'
      events.add({ type, response: { ...head, ...end, usage: toResponsesUsage(usage) } })
      return events.take()
    },
    failure: events.failure,
  })

  function readChunk(chunk: JsonObject, event: SseEvent): void {
    if (isJsonObject(chunk.usage)) usage = chunk.usage
    const choice = choiceOf(chunk)
    if (choice === undefined) return
    const { output } = start(chunk)
    if (isJsonObject(choice.delta)) readDelta(choice.delta, { logprobs: choice.logprobs, event }, output)
    if (typeof choice.finish_reason === 'string') finishReason = choice.finish_reason
  }

  function start(chunk: JsonObject): { head: JsonObject; output: Output } {
    if (started !== undefined) return started
    const head = responseHead(chunk, context)
    started = { head, output: createOutput(idSuffix(head), events.add) }
    events.add({ type: 'response.created', response: head })
    events.add({ type: 'response.in_progress', response: head })
    return started
  }
}

/** Token probabilities of a delta, and the event with its chunk. */
type Logprobs = { readonly logprobs: JsonValue | undefined; readonly event: SseEvent }

function readDelta(delta: JsonObject, { logprobs, event }: Logprobs, output: Output): void {
  output.reasoning(reasoningOf(delta))
  for (const detail of detailsOf(delta)) output.signed(detail)
  const ofText = isJsonObject(logprobs) && Array.isArray(logprobs.content) ? logprobs.content : []
  output.text(contentText(delta.content), ofText, ofText.length > 0 ? event.data.length : 0)
  output.annotations(annotationsOf(delta.annotations))
  output.refusal(stringOf(delta.refusal))
  for (const call of fragmentsOf(delta.tool_calls)) {
    if (!isJsonObject(call)) throw invalidResponse('a tool call is not an object')
    const made = isJsonObject(call.function) ? call.function : {}
    output.call(indexOf(call.index), {
      callId: stringOf(call.id),
      name: toolName(made.name),
      args: stringOf(made.arguments),
    })
  }
}

type Events = {
  add(event: JsonObject): void
  failure(error: UpstreamError): SseEvent
  /** Returns and removes the added events. */
  take(): SseEvent[]
}

/** Events with ascending sequence numbers. */
function createEvents(): Events {
  let sequence = 0
  let pending: SseEvent[] = []
  const toEvent = (event: JsonObject): SseEvent => {
    const data = JSON.stringify({ ...event, sequence_number: sequence })
    sequence += 1
    return { event: String(event.type), data }
  }
  return {
    add: (event) => {
      pending.push(toEvent(event))
    },
    failure: ({ code, message }) => toEvent({ type: 'error', code, message, param: null }),
    take() {
      const taken = pending
      pending = []
      return taken
    },
  }
}
