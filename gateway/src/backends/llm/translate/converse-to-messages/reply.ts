import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { toConverseCitation } from '../citations/converse-citations.ts'
import { countsFromMessages, type TokenCounts } from '../token-counts.ts'
import { invalidResponse } from '../upstream-error.ts'

/** Translates a message to a response of the Converse API. Throws `upstream_invalid` for other objects. */
export function messageToConverse(body: JsonObject): JsonObject {
  const { content, stop_reason: reason, usage } = body
  if (!Array.isArray(content)) throw invalidResponse('it is not a message')
  return {
    output: { message: { role: 'assistant', content: content.flatMap(toBlock) } },
    stopReason: toStopReason(reason),
    usage: toConverseUsage(countsFromMessages(usage)),
  }
}

/** Stop reasons without an equal one in the Converse API. */
const stopReasons: ReadonlyMap<JsonValue, string> = new Map([
  ['refusal', 'content_filtered'],
  ['pause_turn', 'end_turn'],
])

export function toStopReason(reason: JsonValue | undefined): string {
  return stopReasons.get(reason ?? '') ?? (typeof reason === 'string' ? reason : 'end_turn')
}

export function toConverseUsage({ input, cacheRead, cacheWrite, output }: TokenCounts): JsonObject {
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + cacheRead + cacheWrite + output,
    cacheReadInputTokens: cacheRead,
    cacheWriteInputTokens: cacheWrite,
  }
}

function toBlock(block: JsonValue): JsonObject[] {
  const { type, text, citations, id, name, input, thinking, signature, data } = isJsonObject(block)
    ? block
    : {}
  switch (type) {
    case 'text':
      return text === '' ? [] : [toText(text ?? '', citations)]
    case 'tool_use':
      return [{ toolUse: { toolUseId: id ?? '', name: name ?? '', input: input ?? {} } }]
    case 'thinking': {
      const signed = typeof signature === 'string' && signature !== '' ? { signature } : undefined
      return [{ reasoningContent: { reasoningText: { text: thinking ?? '', ...signed } } }]
    }
    case 'redacted_thinking':
      return [{ reasoningContent: { redactedContent: data ?? '' } }]
    default:
      throw invalidResponse(`a content block of type ${String(type)} cannot be translated`)
  }
}

function toText(text: JsonValue, given: JsonValue | undefined): JsonObject {
  const known = Array.isArray(given) ? given.map(toConverseCitation) : []
  const citations = known.filter((citation) => citation !== undefined)
  return citations.length === 0 ? { text } : { citationsContent: { content: [{ text }], citations } }
}
