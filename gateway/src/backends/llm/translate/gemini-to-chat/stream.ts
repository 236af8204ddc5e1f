import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { createChunkTranslator } from '../chat-chunk.ts'
import { createStreamBudget, fragmentsOf, indexOf, type StreamBudget, toolName } from '../limits.ts'
import { contentText, reasoningOf, stringOf } from '../messages-to-chat/reply.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import { invalidResponse, toErrorBody, type UpstreamError } from '../upstream-error.ts'
import {
  callId,
  callParts,
  type FunctionCall,
  imageParts,
  responseHead,
  thinkingOf,
  toFinishReason,
  toGrounding,
  toLogprobsResult,
  toUsageMetadata,
} from './candidate.ts'
import { readArguments } from './reply.ts'

/** More choices than any server generates. */
const maxChoices = 128

/** An incomplete tool call: Gemini sends calls as a whole. */
type ToolCall = { id: string; name: string; args: string }

type Choice = {
  readonly calls: Map<number, ToolCall>
  readonly thinking: JsonObject[]
  readonly annotations: JsonValue[]
  /** Positions of citations count its bytes. */
  text: string
  /** Key of the call of the latest fragment. */
  lastCall: number
  refused: boolean
  finishReason: string | undefined
}

/**
 * Translates the chunks of a streamed chat completion to events of `streamGenerateContent`. Finish reasons
 * and counts are in the last event, after the end marker, so that a truncated stream does not look complete.
 */
export function chunkStreamToContent(context: TranslationContext): StreamTranslator {
  let head: JsonObject | undefined
  let usage: JsonValue | undefined
  const choices = new Map<number, Choice>()
  const budget = createStreamBudget()
  const showsThoughts = context.settings?.includeThoughts === true

  return createChunkTranslator({
    read: readChunk,
    isComplete: () =>
      choices.size > 0 && [...choices.values()].every(({ finishReason }) => finishReason !== undefined),
    close() {
      const candidates = [...choices].map(([index, choice]) => ({
        ...withParts(lastPartsOf(choice)),
        finishReason: toFinishReason(choice.finishReason, choice.refused),
        index,
        ...groundingOf(choice),
      }))
      return [toEvent({ candidates, usageMetadata: toUsageMetadata(usage), ...head })]
    },
    failure,
  })

  function readChunk(chunk: JsonObject): SseEvent[] {
    if (isJsonObject(chunk.usage)) usage = chunk.usage
    // Azure begins with the results of filters, and the usage has a chunk of its own.
    const list = Array.isArray(chunk.choices) ? chunk.choices : []
    if (list.length === 0) return []
    head ??= responseHead(chunk, context)
    const candidates = list.flatMap((item, position) => {
      if (!isJsonObject(item)) throw invalidResponse('a choice is not an object')
      return readChoice(item, indexOf(item.index) ?? position)
    })
    return candidates.length === 0 ? [] : [toEvent({ candidates, ...head })]
  }

  function readChoice(item: JsonObject, index: number): JsonObject[] {
    const choice = choiceAt(index)
    const delta = isJsonObject(item.delta) ? item.delta : {}
    const parts: JsonObject[] = []
    const thoughts = showsThoughts ? reasoningOf(delta) : ''
    if (thoughts !== '') parts.push({ text: thoughts, thought: true })
    const refusal = stringOf(delta.refusal)
    if (refusal !== '') choice.refused = true
    const text = contentText(delta.content) + refusal
    if (text !== '') parts.push({ text })
    budget.addText(text.length)
    choice.text += text
    for (const annotation of Array.isArray(delta.annotations) ? delta.annotations : []) {
      budget.addItem()
      budget.addText(JSON.stringify(annotation).length)
      choice.annotations.push(annotation)
    }
    parts.push(...imageParts(delta.images))
    for (const detail of thinkingOf(delta)) {
      budget.addItem()
      budget.addText(JSON.stringify(detail).length)
      choice.thinking.push(detail)
    }
    for (const fragment of fragmentsOf(delta.tool_calls)) addFragment(choice, fragment, budget)
    if (typeof item.finish_reason === 'string') choice.finishReason = item.finish_reason
    const logprobsResult = toLogprobsResult(item.logprobs)
    if (parts.length === 0 && logprobsResult === undefined) return []
    const logprobs = logprobsResult === undefined ? undefined : { logprobsResult }
    return [{ ...withParts(parts), index, ...logprobs }]
  }

  function choiceAt(index: number): Choice {
    const known = choices.get(index)
    if (known !== undefined) return known
    if (choices.size >= maxChoices) throw invalidResponse('too many choices')
    const choice: Choice = {
      calls: new Map(),
      thinking: [],
      annotations: [],
      text: '',
      lastCall: 0,
      refused: false,
      finishReason: undefined,
    }
    choices.set(index, choice)
    return choice
  }

  /**
   * Without calls, an empty text as Google sends it: clients skip a candidate without content, with the
   * counts in its event.
   */
  function lastPartsOf(choice: Choice): JsonObject[] {
    const calls = callsOf(choice)
    return calls.length > 0 ? calls : [{ text: '' }]
  }

  function callsOf({ calls, thinking, finishReason }: Choice): JsonObject[] {
    const complete = [...calls.values()].flatMap(({ id, name, args: text }, index): FunctionCall[] => {
      if (name === '') throw invalidResponse('a tool call without a name')
      const args = readArguments(text)
      if (args !== undefined) return [{ id: callId(id, head?.responseId, index), name, args }]
      // The length limit truncated the last call, and incomplete arguments are unusable.
      if (finishReason === 'length' && index === calls.size - 1) return []
      throw invalidResponse('the arguments of a tool call are not a JSON object')
    })
    return callParts(complete, thinking)
  }
}

function groundingOf({ annotations, text }: Choice): JsonObject | undefined {
  const groundingMetadata = toGrounding(annotations, text)
  return groundingMetadata && { groundingMetadata }
}

/** Adds a fragment. Some servers omit the index, and some send index 0 with different ids. */
function addFragment(choice: Choice, fragment: JsonValue, budget: StreamBudget): void {
  if (!isJsonObject(fragment)) throw invalidResponse('a tool call is not an object')
  const made = isJsonObject(fragment.function) ? fragment.function : {}
  const id = stringOf(fragment.id)
  const name = toolName(made.name)
  const args = stringOf(made.arguments)
  budget.addText(id.length + args.length)
  choice.lastCall = indexOf(fragment.index) ?? choice.lastCall
  const known = choice.calls.get(choice.lastCall)
  const isNew = known === undefined || (id !== '' && name !== '' && known.name !== '' && id !== known.id)
  if (!isNew) {
    known.args += args
    if (known.name === '') known.name = name
    if (known.id === '') known.id = id
    return
  }
  budget.addItem()
  // A call that takes the index of another one moves that one to an index of its own.
  if (known !== undefined) choice.calls.set(-choice.calls.size - 1, known)
  choice.calls.delete(choice.lastCall)
  choice.calls.set(choice.lastCall, { id, name, args })
}

/** A candidate without parts has no content: clients add contents to their history. */
function withParts(parts: JsonObject[]): JsonObject {
  return parts.length === 0 ? {} : { content: { role: 'model', parts } }
}

function toEvent(response: JsonObject): SseEvent {
  return { data: JSON.stringify(response) }
}

function failure(error: UpstreamError): SseEvent {
  return toEvent(toErrorBody('google', error))
}
