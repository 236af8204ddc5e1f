import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { shortName, toolName } from '../limits.ts'
import { contentText, reasoningOf, stringOf } from '../messages-to-chat/reply.ts'
import { countsFromChat, type TokenCounts } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'

/** Translates a chat completion to a response of `/v2/chat`. Throws `upstream_invalid` if it is none. */
export function completionToCohere(completion: JsonObject, { now }: TranslationContext): JsonObject {
  const choice = Array.isArray(completion.choices) ? completion.choices[0] : undefined
  if (!isJsonObject(choice) || !isJsonObject(choice.message))
    throw invalidResponse('it is not a chat completion')
  const { message, finish_reason: finishReason } = choice
  const id = responseId(completion.id, now())
  const thinking = reasoningOf(message)
  const refusal = stringOf(message.refusal)
  const text = contentText(message.content) + refusal
  const content: JsonObject[] = [
    ...(thinking === '' ? [] : [{ type: 'thinking', thinking }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
  ]
  const calls = toToolCalls(message.tool_calls, id)
  const citations = citationsOf(message.annotations, text, content.length - 1)
  const outcome = { calledTools: calls.length > 0, hasRefused: refusal !== '' }
  return {
    id,
    finish_reason: toFinishReason(finishReason, outcome),
    message: {
      role: 'assistant',
      ...(content.length === 0 ? undefined : { content }),
      ...(calls.length === 0 ? undefined : { tool_calls: calls }),
      ...(citations.length === 0 ? undefined : { citations }),
    },
    usage: toCohereUsage(countsFromChat(completion.usage)),
  }
}

/** The id of a response, generated if absent. */
export function responseId(id: JsonValue | undefined, now: number): string {
  return shortName(id).replace(/^(?:chatcmpl-|msg_)/, '') || now.toString(36)
}

/** `usage` of a response. Input includes cached tokens. */
export function toCohereUsage({ input, cacheRead, cacheWrite, output }: TokenCounts): JsonObject {
  const tokens = { input_tokens: input + cacheRead + cacheWrite, output_tokens: output }
  return { billed_units: tokens, tokens, cached_tokens: cacheRead }
}

function toFinishReason(
  finishReason: JsonValue | undefined,
  { calledTools, hasRefused }: { calledTools: boolean; hasRefused: boolean },
): string {
  if (finishReason === 'length') return 'MAX_TOKENS'
  if (finishReason === 'content_filter' || hasRefused) return 'ERROR'
  return calledTools ? 'TOOL_CALL' : 'COMPLETE'
}

function toToolCalls(calls: JsonValue | undefined, responseId: string): JsonObject[] {
  if (calls === undefined || calls === null) return []
  if (!Array.isArray(calls)) throw invalidResponse('tool_calls is not a list')
  return calls.map((call, index) => {
    if (!isJsonObject(call) || !isJsonObject(call.function) || typeof call.function.name !== 'string')
      throw invalidResponse('a tool call without a function')
    const { name, arguments: given } = call.function
    // Some servers omit empty arguments, and some send an object in place of a string.
    const args = isJsonObject(given) ? writeJson(given) : stringOf(given) || '{}'
    if (args === undefined) throw invalidResponse('the arguments of a tool call are nested too deep')
    return {
      id: stringOf(call.id) || `call_${responseId}_${index}`,
      type: 'function',
      function: { name: toolName(name), arguments: args },
    }
  })
}

/** Citations of pages in the text at `index` of the content. */
export function citationsOf(annotations: JsonValue | undefined, text: string, index: number): JsonObject[] {
  if (!Array.isArray(annotations)) return []
  return annotations.flatMap((annotation): JsonObject[] => {
    const cited = isJsonObject(annotation) ? annotation.url_citation : undefined
    if (!isJsonObject(cited)) return []
    const { url, title } = cited
    const [start, end] = [position(cited.start_index), position(cited.end_index)]
    const document = { title: title ?? '', url: url ?? '' }
    return [
      {
        ...{ start, end, text: text.slice(start, end), type: 'TEXT_CONTENT', content_index: index },
        sources: [{ type: 'document', id: url ?? '', document }],
      },
    ]
  })
}

function position(index: JsonValue | undefined): number {
  return typeof index === 'number' ? Math.max(0, index) : 0
}
