import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { fromConverseCitation } from '../citations/converse-citations.ts'
import { parseExactObject } from '../exact-json.ts'
import { createObjectEvent } from '../stream-event.ts'
import { noTokens, toMessagesUsage } from '../token-counts.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import { invalidResponse, toErrorBody, truncatedStream, type UpstreamError } from '../upstream-error.ts'
import { readBedrockException } from './errors.ts'
import { countsFromConverse, messageEnd, messageHead } from './reply.ts'

type BlockKind = 'text' | 'thinking' | 'tool_use'

/** The open block: its index in the upstream's events. */
type OpenBlock = { readonly source: JsonValue; readonly kind: BlockKind }

/**
 * Translates the events of `ConverseStream` to those of a message. Blocks of text start with their first
 * delta upstream. `metadata` with the usage ends the stream.
 */
export function converseStreamToMessages(context: TranslationContext): StreamTranslator {
  let state: StreamTranslator['state'] = 'open'
  let closed = false
  let open: OpenBlock | undefined
  let blocks = 0
  let stopReason: JsonValue | undefined
  let counts = noTokens
  let started = false

  function start(): SseEvent[] {
    if (started) return []
    started = true
    // The service reports the input tokens at the end only; `message_delta` contains all counts.
    const message = {
      ...messageHead(context),
      ...{ content: [], stop_reason: null, stop_sequence: null, usage: toMessagesUsage(noTokens) },
    }
    return [toEvent({ type: 'message_start', message })]
  }

  function close(): SseEvent[] {
    if (open === undefined) return []
    open = undefined
    blocks += 1
    return [toEvent({ type: 'content_block_stop', index: blocks - 1 })]
  }

  function openBlock(source: JsonValue, kind: BlockKind, block: JsonObject): SseEvent[] {
    if (open !== undefined && open.source === source && open.kind === kind) return []
    const closing = close()
    open = { source, kind }
    return [...closing, toEvent({ type: 'content_block_start', index: blocks, content_block: block })]
  }

  function delta(source: JsonValue, kind: BlockKind, block: JsonObject, change: JsonObject): SseEvent[] {
    const opening = openBlock(source, kind, block)
    return [...opening, toEvent({ type: 'content_block_delta', index: blocks, delta: change })]
  }

  function startBlock({ contentBlockIndex: source = 0, start: begun }: JsonObject): SseEvent[] {
    const tool = isJsonObject(begun) ? begun.toolUse : undefined
    if (!isJsonObject(tool)) return []
    const { toolUseId: id, name } = tool
    const closing = close()
    const block = { type: 'tool_use', id: id ?? '', name: name ?? '', input: {} }
    return [...closing, ...openBlock(source, 'tool_use', block)]
  }

  function readDelta({ contentBlockIndex: source = 0, delta: change }: JsonObject): SseEvent[] {
    if (!isJsonObject(change)) throw invalidResponse('a delta is not an object')
    const { text, toolUse, reasoningContent: reasoning } = change
    if (typeof text === 'string') {
      return text === ''
        ? []
        : delta(source, 'text', { type: 'text', text: '' }, { type: 'text_delta', text })
    }
    if (isJsonObject(toolUse)) {
      if (open?.kind !== 'tool_use' || open.source !== source)
        throw invalidResponse('a tool call without a name')
      const { input } = toolUse
      const change = { type: 'input_json_delta', partial_json: typeof input === 'string' ? input : '' }
      return [toEvent({ type: 'content_block_delta', index: blocks, delta: change })]
    }
    if (isJsonObject(reasoning)) return readReasoning(source, reasoning)
    const citation = fromConverseCitation(change.citation)
    if (citation === undefined) return []
    return delta(source, 'text', { type: 'text', text: '' }, { type: 'citations_delta', citation })
  }

  function readReasoning(source: JsonValue, reasoning: JsonObject): SseEvent[] {
    const { text, signature, redactedContent } = reasoning
    if (typeof redactedContent === 'string') {
      const block = { type: 'redacted_thinking', data: redactedContent }
      const closing = close()
      const begin = toEvent({ type: 'content_block_start', index: blocks, content_block: block })
      blocks += 1
      return [...closing, begin, toEvent({ type: 'content_block_stop', index: blocks - 1 })]
    }
    const empty = { type: 'thinking', thinking: '', signature: '' }
    if (typeof signature === 'string')
      return delta(source, 'thinking', empty, { type: 'signature_delta', signature })
    return delta(source, 'thinking', empty, { type: 'thinking_delta', thinking: text ?? '' })
  }

  function read(event: string | undefined, body: JsonObject): SseEvent[] {
    switch (event) {
      case 'messageStart':
        return []
      case 'contentBlockStart':
        return startBlock(body)
      case 'contentBlockDelta':
        return readDelta(body)
      case 'contentBlockStop':
        return close()
      case 'messageStop':
        stopReason = body.stopReason ?? 'end_turn'
        return close()
      case 'metadata':
        if (stopReason === undefined) throw invalidResponse('the stream ended before the answer did')
        counts = countsFromConverse(body.usage)
        state = 'ended'
        return []
      default:
        return []
    }
  }

  return {
    get state() {
      return state
    },
    event({ event, data }) {
      if (state !== 'open') return []
      const body = parseExactObject(data)
      if (body === undefined) throw invalidResponse('an event of the stream is not a JSON object')
      if (event === 'exception') {
        state = 'failed'
        const { type, message } = body
        return [failure(readBedrockException(String(type), String(message)))]
      }
      return [...start(), ...read(event, body)]
    },
    end() {
      if (closed || state === 'failed') return []
      closed = true
      if (state !== 'ended') return [failure(truncatedStream)]
      const usage = toMessagesUsage(counts)
      return [
        toEvent({ type: 'message_delta', delta: messageEnd(stopReason), usage }),
        toEvent({ type: 'message_stop' }),
      ]
    },
  }
}

function failure(error: UpstreamError): SseEvent {
  return { event: 'error', data: JSON.stringify(toErrorBody('anthropic', error)) }
}

function toEvent(data: JsonObject & { type: string }): SseEvent {
  return createObjectEvent(data.type, data)
}
