import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { fromConverseCitation, sourceText } from '../citations/converse-citations.ts'
import { noTokens, type TokenCounts, toMessagesUsage } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'

/** Translates a response of the Converse API to a message. Throws `upstream_invalid` for other objects. */
export function converseToMessage(body: JsonObject, context: TranslationContext): JsonObject {
  const message = isJsonObject(body.output) ? body.output.message : undefined
  if (!isJsonObject(message) || !Array.isArray(message.content))
    throw invalidResponse('it is not a response of the Converse API')
  return {
    ...messageHead(context),
    content: message.content.flatMap((block) => toBlock(block)),
    ...messageEnd(body.stopReason),
    usage: toMessagesUsage(countsFromConverse(body.usage)),
  }
}

/** The service has an id in a header only. */
export function messageHead({ requestModel, now }: TranslationContext): JsonObject {
  return { id: `msg_bdrk_${now().toString(36)}`, type: 'message', role: 'assistant', model: requestModel }
}

/** Stop reasons without an equal one in the messages API. */
const stopReasons: ReadonlyMap<JsonValue, string> = new Map([
  ['guardrail_intervened', 'refusal'],
  ['content_filtered', 'refusal'],
  // The response is not complete; the messages API has no other reason for that.
  ['malformed_model_output', 'max_tokens'],
  ['malformed_tool_use', 'max_tokens'],
])

/** The stop reason fields of a message. */
export function messageEnd(stopReason: JsonValue | undefined): JsonObject {
  const reason =
    stopReasons.get(stopReason ?? '') ?? (typeof stopReason === 'string' ? stopReason : 'end_turn')
  if (reason !== 'refusal') return { stop_reason: reason, stop_sequence: null }
  const explanation = `Amazon Bedrock: ${stopReason}`
  return {
    stop_reason: reason,
    stop_sequence: null,
    stop_details: { type: 'refusal', category: null, explanation },
  }
}

/** Counts of `usage`; the input excludes tokens read from and written to the cache. */
export function countsFromConverse(usage: JsonValue | undefined): TokenCounts {
  if (!isJsonObject(usage)) return noTokens
  return {
    input: count(usage.inputTokens),
    cacheRead: count(usage.cacheReadInputTokens),
    cacheWrite: count(usage.cacheWriteInputTokens),
    output: count(usage.outputTokens),
    reasoning: 0,
  }
}

function count(value: JsonValue | undefined): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
}

function toBlock(block: JsonValue): JsonObject[] {
  if (!isJsonObject(block)) throw invalidResponse('a content block is not an object')
  const { text, toolUse, reasoningContent: reasoning, citationsContent: cited } = block
  if (typeof text === 'string') return text === '' ? [] : [{ type: 'text', text }]
  if (isJsonObject(toolUse)) {
    const { toolUseId: id, name, input } = toolUse
    return [{ type: 'tool_use', id: id ?? '', name: name ?? '', input: isJsonObject(input) ? input : {} }]
  }
  if (isJsonObject(reasoning)) return [toThinking(reasoning)]
  if (isJsonObject(cited)) return [toCitedText(cited)]
  throw invalidResponse(`a content block of type ${Object.keys(block)[0]} cannot be translated`)
}

function toThinking({ reasoningText, redactedContent }: JsonObject): JsonObject {
  if (!isJsonObject(reasoningText)) return { type: 'redacted_thinking', data: redactedContent ?? '' }
  const { text, signature } = reasoningText
  return { type: 'thinking', thinking: text ?? '', signature: signature ?? '' }
}

function toCitedText({ content, citations }: JsonObject): JsonObject {
  const known = Array.isArray(citations) ? citations.map(fromConverseCitation) : []
  const cited = known.filter((citation) => citation !== undefined)
  const text = sourceText(content)
  return { type: 'text', text, ...(cited.length > 0 ? { citations: cited } : undefined) }
}
