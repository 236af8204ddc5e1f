import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { awsErrorType } from '../../../../pipeline/errors.ts'
import { toConverseCitation } from '../citations/converse-citations.ts'
import { objectOf } from '../stream-event.ts'
import { countsFromMessages, noTokens } from '../token-counts.ts'
import type { StreamTranslator } from '../translate.ts'
import { invalidResponse, readStreamError, truncatedStream, type UpstreamError } from '../upstream-error.ts'
import { toConverseUsage, toStopReason } from './reply.ts'

/** Translates the events of a message to those of `ConverseStream`. */
export function messagesStreamToConverse(): StreamTranslator {
  let state: StreamTranslator['state'] = 'open'
  let isClosed = false
  let stopReason: JsonValue | undefined
  let counts = noTokens

  function read(body: JsonObject): SseEvent[] {
    const { type, index = 0, message, content_block: block, delta, usage } = body
    switch (type) {
      case 'message_start':
        counts = countsFromMessages(isJsonObject(message) ? message.usage : undefined)
        return [toEvent('messageStart', { role: 'assistant' })]
      case 'content_block_start':
        return isJsonObject(block) ? startBlock(index, block) : []
      case 'content_block_delta':
        return isJsonObject(delta) ? readDelta(index, delta) : []
      case 'content_block_stop':
        return [toEvent('contentBlockStop', { contentBlockIndex: index })]
      case 'message_delta':
        counts = countsFromMessages(usage, counts)
        if (isJsonObject(delta)) stopReason = delta.stop_reason ?? stopReason
        return []
      case 'message_stop':
        state = 'ended'
        return []
      case 'error':
        state = 'failed'
        return [failure(readStreamError(body))]
      default:
        return []
    }
  }

  return {
    get state() {
      return state
    },
    event(event) {
      if (state !== 'open') return []
      const body = objectOf(event)
      if (body === undefined) throw invalidResponse('an event of the stream is not a JSON object')
      return read(body)
    },
    end() {
      if (isClosed || state === 'failed') return []
      isClosed = true
      if (state !== 'ended') return [failure(truncatedStream)]
      return [
        toEvent('messageStop', { stopReason: toStopReason(stopReason) }),
        toEvent('metadata', { usage: toConverseUsage(counts) }),
      ]
    },
  }
}

function startBlock(index: JsonValue, { type, id, name, text, data }: JsonObject): SseEvent[] {
  if (type === 'tool_use') {
    const start = { toolUse: { toolUseId: id ?? '', name: name ?? '' } }
    return [toEvent('contentBlockStart', { contentBlockIndex: index, start })]
  }
  if (type === 'redacted_thinking')
    return deltaOf(index, { reasoningContent: { redactedContent: data ?? '' } })
  if (type === 'text') return typeof text === 'string' && text !== '' ? deltaOf(index, { text }) : []
  if (type === 'thinking') return []
  throw invalidResponse(`a content block of type ${String(type)} cannot be translated`)
}

function readDelta(
  index: JsonValue,
  { type, text, partial_json: input, thinking, signature, citation: given }: JsonObject,
): SseEvent[] {
  switch (type) {
    case 'text_delta':
      return deltaOf(index, { text: text ?? '' })
    case 'input_json_delta':
      return deltaOf(index, { toolUse: { input: input ?? '' } })
    case 'thinking_delta':
      return deltaOf(index, { reasoningContent: { text: thinking ?? '' } })
    case 'signature_delta':
      return signature === '' ? [] : deltaOf(index, { reasoningContent: { signature: signature ?? '' } })
    case 'citations_delta': {
      const citation = toConverseCitation(given)
      return citation === undefined ? [] : deltaOf(index, { citation })
    }
    default:
      return []
  }
}

function deltaOf(index: JsonValue, delta: JsonObject): SseEvent[] {
  return [toEvent('contentBlockDelta', { contentBlockIndex: index, delta })]
}

function toEvent(event: string, data: JsonObject): SseEvent {
  return { event, data: JSON.stringify(data) }
}

function failure({ status, message }: UpstreamError): SseEvent {
  const name = awsErrorType(status)
  return toEvent('exception', { type: name.charAt(0).toLowerCase() + name.slice(1), message })
}
