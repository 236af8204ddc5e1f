import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { createChunkWriter } from '../chat-chunk.ts'
import { parseExactObject } from '../exact-json.ts'
import { createStreamBudget } from '../limits.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import {
  invalidResponse,
  readStreamError,
  toErrorBody,
  truncatedStream,
  type UpstreamError,
} from '../upstream-error.ts'
import { blockedPrompt, indexOf, readCandidate, refusalOf, toFinishReason, toLogprobs } from './candidate.ts'
import { usageFromGemini } from './counts.ts'
import { groundingAnnotations } from './grounding.ts'
import { callSeed, completionHead } from './reply.ts'

/** More candidates than any model generates. */
const maxCandidates = 128

/** State of one candidate; `finish` is sent at the end, so that a truncated stream does not look complete. */
type Choice = {
  calls: number
  finish: JsonObject | undefined
  /** Positions of citations count the bytes of the whole text. */
  text: string
  grounding: JsonObject | undefined
}

const emptyChoice: Choice = { calls: 0, finish: undefined, text: '', grounding: undefined }

type Head = { readonly write: ReturnType<typeof createChunkWriter>; readonly seed: string }

/**
 * Translates the events of `streamGenerateContent` to chunks of a chat completion. The stream has no end
 * marker: counts and further content may follow the finish reason, so the closing chunks are those of `end`.
 */
export function contentStreamToChunks(context: TranslationContext): StreamTranslator {
  let state: StreamTranslator['state'] = 'open'
  let closed = false
  let head: Head | undefined
  let usage: JsonObject | undefined
  const choices = new Map<number, Choice>()
  const budget = createStreamBudget()

  return {
    get state() {
      return state
    },
    event({ data }) {
      if (state !== 'open' || closed) return []
      const event = parseExactObject(data)
      if (event === undefined) throw invalidResponse('an event of the stream is not a JSON object')
      if (isJsonObject(event.error)) {
        state = 'failed'
        return [failure(readStreamError(event))]
      }
      head ??= {
        write: createChunkWriter(completionHead(event, context), context),
        seed: callSeed(event, context),
      }
      if (isJsonObject(event.usageMetadata)) usage = event.usageMetadata
      const refusal = blockedPrompt(event)
      if (refusal !== undefined) return block(refusal)
      const { candidates = [] } = event
      if (!Array.isArray(candidates)) throw invalidResponse('the candidates are not a list')
      return candidates.flatMap((candidate) => {
        if (!isJsonObject(candidate)) throw invalidResponse('a candidate is not an object')
        return continueChoice(candidate)
      })
    },
    end() {
      if (closed || state === 'failed') return []
      closed = true
      const finishes = [...choices.values()].map(({ finish }) => finish)
      const complete = finishes.filter((finish) => finish !== undefined)
      if (complete.length === 0 || complete.length < finishes.length) return [failure(truncatedStream)]
      const events = [...choices].flatMap(([index, choice]) => citationsOf(index, choice))
      events.push(...complete.map((finish) => chunk({ choices: [finish] })))
      if (context.includeUsage) events.push(chunk({ choices: [], usage: usageFromGemini(usage) }))
      events.push({ data: '[DONE]' })
      return events
    },
  }

  function block(refusal: string): SseEvent[] {
    choices.set(0, { ...emptyChoice, finish: choiceOf(0, { refusal }, 'content_filter') })
    return [chunk({ choices: [choiceOf(0, { role: 'assistant', content: '', refusal: null })] })]
  }

  /** Metadata of later events replaces that of earlier ones. */
  function citationsOf(index: number, { text, grounding }: Choice): SseEvent[] {
    const annotations = groundingAnnotations(grounding, text)
    return annotations.length === 0 ? [] : [chunk({ choices: [choiceOf(index, { annotations })] })]
  }

  function continueChoice(candidate: JsonObject): SseEvent[] {
    const index = indexOf(candidate)
    const events: SseEvent[] = []
    let choice = choices.get(index)
    if (choice === undefined) {
      if (choices.size >= maxCandidates) throw invalidResponse('too many candidates')
      choice = { ...emptyChoice }
      choices.set(index, choice)
      events.push(chunk({ choices: [choiceOf(index, { role: 'assistant', content: '', refusal: null })] }))
    }
    const ids = { responseId: head?.seed ?? '', candidate: index, firstCall: choice.calls }
    const { text, reasoning, calls, images } = readCandidate(candidate, ids)
    const delta: JsonObject = {}
    if (reasoning !== '') delta.reasoning_content = reasoning
    if (text !== '') delta.content = text
    budget.addText(text.length)
    choice.text += text
    if (isJsonObject(candidate.groundingMetadata)) choice.grounding = candidate.groundingMetadata
    if (images.length > 0) delta.images = images
    if (calls.length > 0) {
      const first = choice.calls
      delta.tool_calls = calls.map((call, position) => ({ index: first + position, ...call }))
      choice.calls += calls.length
    }
    const logprobs = toLogprobs(candidate)
    if (Object.keys(delta).length > 0 || logprobs !== null)
      events.push(chunk({ choices: [{ ...choiceOf(index, delta), logprobs }] }))
    if (typeof candidate.finishReason === 'string') {
      const refusal = refusalOf(candidate)
      budget.addText(refusal?.length ?? 0)
      const reason = toFinishReason(candidate.finishReason, choice.calls > 0)
      choice.finish = choiceOf(index, refusal === null ? {} : { refusal }, reason)
    }
    return events
  }

  function chunk(content: JsonObject): SseEvent {
    if (head === undefined) throw invalidResponse('the stream has no events')
    return head.write(content)
  }
}

function failure(error: UpstreamError): SseEvent {
  return { data: JSON.stringify(toErrorBody('openai', error)) }
}

function choiceOf(index: number, delta: JsonObject, finishReason: string | null = null): JsonObject {
  return { index, delta, logprobs: null, finish_reason: finishReason }
}
