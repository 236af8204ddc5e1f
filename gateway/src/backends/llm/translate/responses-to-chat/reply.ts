import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { toSignature } from '../gemini-to-chat/signature.ts'
import { shortName } from '../limits.ts'
import { contentText, reasoningOf, stringOf } from '../messages-to-chat/reply.ts'
import { countsFromChat } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import { settingsOf } from './settings.ts'

/** Translates a chat completion to a response. Throws `upstream_invalid` if it is not a chat completion. */
export function completionToResponse(completion: JsonObject, context: TranslationContext): JsonObject {
  const choice = Array.isArray(completion.choices) ? completion.choices[0] : undefined
  if (!isJsonObject(choice) || !isJsonObject(choice.message))
    throw invalidResponse('it is not a chat completion')
  const head = responseHead(completion, context)
  const suffix = idSuffix(head)
  const { message, logprobs, finish_reason: finishReason } = choice
  const output: JsonObject[] = []
  const reasoning = reasoningOf(message)
  const details = detailsOf(message)
  if (reasoning !== '' || details.length > 0) output.push(reasoningItem(`rs_${suffix}`, reasoning, details))
  const content = contentOf(message, logprobs)
  if (content.length > 0) output.push(messageItem(`msg_${suffix}`, content))
  const calls = message.tool_calls ?? []
  if (!Array.isArray(calls)) throw invalidResponse('tool_calls is not a list')
  for (const [index, call] of calls.entries()) output.push(toCallItem(call, `${suffix}_${index}`))
  return { ...head, ...responseEnd(finishReason, output), usage: toResponsesUsage(completion.usage) }
}

/** The fields of a response that are known from the first chunk. */
export function responseHead(completion: JsonObject, context: TranslationContext): JsonObject {
  const { requestModel, now, settings = settingsOf({}) } = context
  const createdMs = now()
  const { id, model } = completion
  const suffix = shortName(id).replace(/^(?:chatcmpl|resp)[-_]/, '') || createdMs.toString(36)
  return {
    ...settings,
    id: `resp_${suffix}`,
    object: 'response',
    created_at: Math.floor(createdMs / 1000),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    model: shortName(model) || requestModel,
    output: [],
    service_tier: completion.service_tier === 'priority' ? 'priority' : 'default',
  }
}

/** The part of the ids of items that is equal within a response. */
export function idSuffix({ id }: JsonObject): string {
  return stringOf(id).slice('resp_'.length)
}

/** Status and output of a complete response. The last item of a truncated one is incomplete. */
export function responseEnd(finishReason: JsonValue | undefined, output: readonly JsonObject[]): JsonObject {
  const reason = incompleteReasons.get(finishReason ?? null)
  if (reason === undefined) return { status: 'completed', output: [...output] }
  const last = output.at(-1)
  const items = last === undefined ? [] : [...output.slice(0, -1), { ...last, status: 'incomplete' }]
  return { status: 'incomplete', incomplete_details: { reason }, output: items }
}

const incompleteReasons: ReadonlyMap<JsonValue, string> = new Map([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
])

export function toResponsesUsage(usage: JsonValue | undefined): JsonObject {
  const { input, cacheRead, cacheWrite, output, reasoning } = countsFromChat(usage)
  const prompt = input + cacheRead + cacheWrite
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  }
}

/** Signed thinking that clients return as it is. */
export function detailsOf({ reasoning_details: details }: JsonObject): JsonObject[] {
  return Array.isArray(details) ? details.filter(isJsonObject) : []
}

export function reasoningItem(id: string, text: string, details: readonly JsonObject[]): JsonObject {
  const encrypted = toSignature(details)
  return {
    id,
    type: 'reasoning',
    summary: [],
    content: text === '' ? [] : [{ type: 'reasoning_text', text }],
    ...(encrypted === undefined ? undefined : { encrypted_content: encrypted }),
    status: 'completed',
  }
}

export function messageItem(id: string, content: readonly JsonObject[]): JsonObject {
  return { id, type: 'message', status: 'completed', role: 'assistant', content: [...content] }
}

export function textPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function contentOf(message: JsonObject, logprobs: JsonValue | undefined): JsonObject[] {
  const text = contentText(message.content)
  const refusal = stringOf(message.refusal)
  const parts: JsonObject[] = []
  if (text !== '') {
    const part = { ...textPart(text), annotations: annotationsOf(message.annotations) }
    parts.push(isJsonObject(logprobs) ? { ...part, logprobs: logprobs.content ?? [] } : part)
  }
  if (refusal !== '') parts.push({ type: 'refusal', refusal })
  return parts
}

/** Citations of addresses have their fields in a member in chat. */
export function annotationsOf(annotations: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(annotations)) return []
  return annotations.flatMap((annotation) => {
    if (!isJsonObject(annotation) || !isJsonObject(annotation.url_citation)) return []
    return [{ type: 'url_citation', ...annotation.url_citation }]
  })
}

export type FunctionCall = { readonly callId: string; readonly name: string; readonly args: string }

export function callItem(id: string, { callId, name, args }: FunctionCall): JsonObject {
  return { id, type: 'function_call', status: 'completed', call_id: callId, name, arguments: args }
}

/** Some servers omit ids and empty arguments, and some send an object in place of a string. */
function toCallItem(call: JsonValue, suffix: string): JsonObject {
  if (!isJsonObject(call) || !isJsonObject(call.function) || typeof call.function.name !== 'string')
    throw invalidResponse('a tool call without a function')
  const { name, arguments: given } = call.function
  const args = isJsonObject(given) ? writeJson(given) : stringOf(given) || '{}'
  if (args === undefined) throw invalidResponse('the arguments of a tool call are nested too deep')
  return callItem(`fc_${suffix}`, { callId: stringOf(call.id) || `call_${suffix}`, name, args })
}
