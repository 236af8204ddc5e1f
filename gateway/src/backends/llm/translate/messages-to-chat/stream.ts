import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { choiceOf, createChunkTranslator } from '../chat-chunk.ts'
import { toTextCitation } from '../citations/url-citations.ts'
import { createStreamBudget, fragmentsOf, indexOf, toolName } from '../limits.ts'
import { countsFromChat, noTokens, toMessagesUsage } from '../token-counts.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import { invalidResponse, toErrorBody, type UpstreamError } from '../upstream-error.ts'
import { type Block, createBlockSequence, toEvent } from './block-sequence.ts'
import {
  contentText,
  messageEnd,
  messageHead,
  messagesTier,
  reasoningOf,
  signatureOf,
  stringOf,
  toolCallId,
} from './reply.ts'

/** An incomplete tool call; `block` is undefined before its name is known. */
type ToolCall = { id: string; name: string; block: Block | undefined }

/** Translates the chunks of a streamed chat completion to events of a message. */
export function chunkStreamToMessages(context: TranslationContext): StreamTranslator {
  let messageId = ''
  let finishReason: string | undefined
  let refusal = ''
  let counts = noTokens
  const budget = createStreamBudget()
  const blocks = createBlockSequence(budget)
  /** By the index in the chunks. */
  const toolCalls = new Map<number, ToolCall>()
  let toolCount = 0
  let lastTool = 0

  return createChunkTranslator({
    read(chunk) {
      const events: SseEvent[] = []
      if (messageId === '') events.push(start(chunk))
      if (isJsonObject(chunk.usage)) counts = countsFromChat(chunk.usage)
      const choice = choiceOf(chunk)
      if (choice === undefined) return events
      if (isJsonObject(choice.delta)) readDelta(choice.delta, events)
      if (typeof choice.finish_reason === 'string') finishReason = choice.finish_reason
      return events
    },
    isComplete: () => finishReason !== undefined,
    close() {
      const outcome = { calledTools: toolCalls.size > 0, refused: refusal !== '' }
      return [
        ...blocks.close(),
        toEvent({
          type: 'message_delta',
          delta: messageEnd(finishReason, outcome, refusal),
          usage: toMessagesUsage(counts),
        }),
        toEvent({ type: 'message_stop' }),
      ]
    },
    failure,
  })

  function start(chunk: JsonObject): SseEvent {
    const head = messageHead(chunk, context)
    messageId = stringOf(head.id)
    // Chat reports the input tokens at the end only; `message_delta` contains all counts.
    const usage = { ...toMessagesUsage(noTokens), service_tier: messagesTier(chunk.service_tier) }
    return toEvent({
      type: 'message_start',
      message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage },
    })
  }

  function readDelta(delta: JsonObject, events: SseEvent[]): void {
    appendText('thinking', reasoningOf(delta), events)
    const signature = context.signedThinking === true ? signatureOf(delta) : ''
    if (signature !== '') events.push(...blocks.sign(signature))
    appendText('text', contentText(delta.content), events)
    const refused = stringOf(delta.refusal)
    budget.addText(refused.length)
    refusal += refused
    appendText('text', refused, events)
    if (Array.isArray(delta.annotations)) appendCitations(delta.annotations, events)
    for (const call of fragmentsOf(delta.tool_calls)) appendToolCall(call, events)
  }

  function appendText(kind: 'text' | 'thinking', fragment: string, events: SseEvent[]): void {
    if (fragment === '') return
    const opened = blocks.text(kind)
    events.push(...opened.events, ...opened.block.append(fragment))
  }

  /** Citations of the text before them, whose block they follow. */
  function appendCitations(annotations: readonly JsonValue[], events: SseEvent[]): void {
    for (const annotation of annotations) {
      const citation = toTextCitation(annotation)
      if (citation === undefined) continue
      const opened = blocks.text('text')
      events.push(...opened.events, ...opened.block.append(citation))
    }
  }

  function appendToolCall(change: JsonValue, events: SseEvent[]): void {
    if (!isJsonObject(change)) throw invalidResponse('a tool call is not an object')
    const made = isJsonObject(change.function) ? change.function : {}
    const call = toolCallFor(change, toolName(made.name))
    const fragment = stringOf(made.arguments)
    if (call.block === undefined && call.name !== '') {
      const opened = blocks.tool(call.id, call.name)
      call.block = opened.block
      events.push(...opened.events)
    }
    if (fragment === '') return
    if (call.block === undefined) throw invalidResponse('a tool call without a name')
    events.push(...call.block.append(fragment))
  }

  /** Finds or adds a call. Some servers omit the index, and some send index 0 with different ids. */
  function toolCallFor(change: JsonObject, name: string): ToolCall {
    const id = stringOf(change.id)
    lastTool = indexOf(change.index) ?? lastTool
    const known = toolCalls.get(lastTool)
    const isNew = known === undefined || (id !== '' && name !== '' && known.name !== '' && id !== known.id)
    if (!isNew) {
      if (known.name === '') known.name = name
      return known
    }
    // Ids of calls may contain state of the provider, so that they remain as they are.
    budget.addText(id.length)
    const call: ToolCall = { id: toolCallId(id, messageId, toolCount), name, block: undefined }
    toolCount += 1
    toolCalls.set(lastTool, call)
    return call
  }
}

function failure(error: UpstreamError): SseEvent {
  return { event: 'error', data: JSON.stringify(toErrorBody('anthropic', error)) }
}
