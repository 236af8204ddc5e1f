import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { createChunkWriter } from '../chat-chunk.ts'
import { toAnnotations } from '../citations/url-citations.ts'
import { createStreamBudget, indexOf, toolName } from '../limits.ts'
import { toFinishReason } from '../stop-reason.ts'
import { objectOf } from '../stream-event.ts'
import { countsFromMessages, noTokens, toChatUsage } from '../token-counts.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import {
  invalidResponse,
  readStreamError,
  toErrorBody,
  truncatedStream,
  type UpstreamError,
} from '../upstream-error.ts'
import { completionHead, refusalOf } from './reply.ts'
import { createThinkingCollector } from './signed-thinking.ts'

/** An incomplete tool call. */
type ToolCall = { index: number; wrote: boolean; initialInput: string }

/** Translates the events of a streamed message to chunks of a chat completion. */
export function messageStreamToChunks(context: TranslationContext): StreamTranslator {
  let state: StreamTranslator['state'] = 'open'
  let closed = false
  let writeChunk: ReturnType<typeof createChunkWriter> | undefined
  let counts = noTokens
  /** Sent after the end marker, so that a truncated stream does not look complete. */
  let finish: JsonObject | undefined
  const toolCalls = new Map<number, ToolCall>()
  const budget = createStreamBudget()
  let callCount = 0
  /** Characters of the text so far, the start of its open block, and the citations of that. */
  let textLength = 0
  let blockStart = 0
  let citations: JsonValue[] = []
  const thinking = context.signedThinking === true ? createThinkingCollector(budget) : undefined

  return {
    get state() {
      return state
    },
    event(translated) {
      if (state !== 'open') return []
      const event = objectOf(translated)
      if (event === undefined) throw invalidResponse('an event of the stream is not a JSON object')
      const detail = thinking?.read(event)
      if (detail !== undefined) return [delta({ reasoning_details: [detail] })]
      switch (event.type) {
        case 'message_start':
          return start(event)
        case 'content_block_start':
          return startBlock(event)
        case 'content_block_delta':
          return continueBlock(event)
        case 'content_block_stop':
          return endBlock(event)
        case 'message_delta':
          readEnd(event)
          return []
        case 'message_stop':
          if (writeChunk === undefined || finish === undefined)
            throw invalidResponse('the stream ended before the message did')
          state = 'ended'
          return []
        case 'error':
          state = 'failed'
          return [failure(readStreamError(event))]
        default:
          // `ping`, and future events of the API.
          return []
      }
    },
    end() {
      if (closed || state === 'failed') return []
      closed = true
      if (state !== 'ended' || finish === undefined) return [failure(truncatedStream)]
      const events = [chunk({ choices: [finish] })]
      if (context.includeUsage) events.push(chunk({ choices: [], usage: toChatUsage(counts) }))
      events.push({ data: '[DONE]' })
      return events
    },
  }

  function start(event: JsonObject): SseEvent[] {
    const { message } = event
    if (writeChunk !== undefined || !isJsonObject(message))
      throw invalidResponse('a message_start out of place')
    writeChunk = createChunkWriter(completionHead(message, context), context)
    counts = countsFromMessages(message.usage)
    return [delta({ role: 'assistant', content: '', refusal: null })]
  }

  function startBlock(event: JsonObject): SseEvent[] {
    const block = event.content_block
    if (!isJsonObject(block)) throw invalidResponse('a content_block_start without a block')
    if (block.type === 'text') {
      blockStart = textLength
      citations = Array.isArray(block.citations) ? [...block.citations] : []
      return typeof block.text === 'string' && block.text !== '' ? [addText(block.text)] : []
    }
    if (block.type !== 'tool_use') return []
    const { input } = block
    if (typeof block.id !== 'string' || typeof block.name !== 'string')
      throw invalidResponse('a tool call without id or name')
    budget.addItem()
    const index = callCount
    callCount += 1
    const { id } = block
    const name = toolName(block.name)
    const initialInput = isJsonObject(input) ? JSON.stringify(input) : '{}'
    budget.addText(initialInput.length)
    const call = { index, wrote: false, initialInput }
    toolCalls.set(indexOf(event.index) ?? 0, call)
    return [
      delta({ tool_calls: [{ index: call.index, id, type: 'function', function: { name, arguments: '' } }] }),
    ]
  }

  function continueBlock(event: JsonObject): SseEvent[] {
    const change = event.delta
    if (!isJsonObject(change)) throw invalidResponse('a content_block_delta without a delta')
    switch (change.type) {
      case 'text_delta':
        return [addText(textOf(change.text))]
      case 'citations_delta':
        addCitation(change.citation)
        return []
      case 'thinking_delta':
        return [delta({ reasoning_content: textOf(change.thinking) })]
      case 'input_json_delta':
        return continueCall(indexOf(event.index), textOf(change.partial_json))
      default:
        // Chunks have no field for signatures.
        return []
    }
  }

  function addText(text: string): SseEvent {
    textLength += text.length
    return delta({ content: text })
  }

  function addCitation(citation: JsonValue | undefined): void {
    if (!isJsonObject(citation)) return
    budget.addItem()
    const { url, source, title } = citation
    budget.addText(String(url ?? source ?? '').length + String(title ?? '').length)
    citations.push({ url: url ?? null, source: source ?? null, title: title ?? null })
  }

  /** Citations of a block whose end is known. */
  function takeAnnotations(): SseEvent[] {
    const annotations = toAnnotations(citations, { start: blockStart, end: textLength })
    citations = []
    return annotations.length === 0 ? [] : [delta({ annotations })]
  }

  function continueCall(index: number | undefined, fragment: string): SseEvent[] {
    const call = toolCalls.get(index ?? 0)
    // Input of the upstream's own tools, whose blocks are not forwarded.
    if (call === undefined || fragment === '') return []
    call.wrote = true
    return [argumentsOf(call, fragment)]
  }

  /** A call without fragments gets its initial input, because chat clients parse the arguments as JSON. */
  function endBlock(event: JsonObject): SseEvent[] {
    if (citations.length > 0) return takeAnnotations()
    const call = toolCalls.get(indexOf(event.index) ?? 0)
    if (call === undefined || call.wrote) return []
    call.wrote = true
    return [argumentsOf(call, call.initialInput)]
  }

  function readEnd(event: JsonObject): void {
    counts = countsFromMessages(event.usage, counts)
    const change = event.delta
    if (!isJsonObject(change) || typeof change.stop_reason !== 'string') return
    const refusal = refusalOf(change)
    finish = choice(refusal === null ? {} : { refusal }, toFinishReason(change.stop_reason))
  }

  function argumentsOf(call: ToolCall, fragment: string): SseEvent {
    return delta({ tool_calls: [{ index: call.index, function: { arguments: fragment } }] })
  }

  function delta(change: JsonObject): SseEvent {
    return chunk({ choices: [choice(change, null)] })
  }

  function chunk(content: JsonObject): SseEvent {
    if (writeChunk === undefined) throw invalidResponse('the stream does not begin with message_start')
    return writeChunk(content)
  }
}

function failure(error: UpstreamError): SseEvent {
  return { data: JSON.stringify(toErrorBody('openai', error)) }
}

function choice(delta: JsonObject, finishReason: string | null): JsonObject {
  return { index: 0, delta, logprobs: null, finish_reason: finishReason }
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw invalidResponse('a delta without text')
  return value
}
