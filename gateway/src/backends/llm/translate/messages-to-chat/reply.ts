import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { citedBlocks } from '../citations/url-citations.ts'
import { parseExactObject } from '../exact-json.ts'
import { toSignature } from '../gemini-to-chat/signature.ts'
import { shortName } from '../limits.ts'
import { type Outcome, toStopReason } from '../stop-reason.ts'
import { countsFromChat, toMessagesUsage } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'

/** Translates a chat completion to a message. Throws `upstream_invalid` if it is not a chat completion. */
export function completionToMessage(completion: JsonObject, context: TranslationContext): JsonObject {
  const choice = Array.isArray(completion.choices) ? completion.choices[0] : undefined
  if (!isJsonObject(choice) || !isJsonObject(choice.message))
    throw invalidResponse('it is not a chat completion')
  const head = messageHead(completion, context)
  const signature = context.signedThinking === true ? signatureOf(choice.message) : ''
  const read = { finishReason: choice.finish_reason, messageId: String(head.id), signature }
  const { content, calledTools, refusal } = readMessage(choice.message, read)
  const outcome = { calledTools, refused: refusal !== '' }
  return {
    ...head,
    content,
    ...messageEnd(choice.finish_reason, outcome, refusal),
    usage: {
      ...toMessagesUsage(countsFromChat(completion.usage)),
      service_tier: messagesTier(completion.service_tier),
    },
  }
}

/** The fields of a message that are known from the first chunk. */
export function messageHead(completion: JsonObject, { requestModel, now }: TranslationContext): JsonObject {
  const { id, model } = completion
  return {
    id: shortName(id).replace(/^chatcmpl-/, 'msg_') || `msg_${now().toString(36)}`,
    type: 'message',
    role: 'assistant',
    model: shortName(model) || requestModel,
  }
}

/** The stop reason fields of a message; for a stream, the `delta` of `message_delta`. */
export function messageEnd(
  finishReason: JsonValue | undefined,
  outcome: Outcome,
  refusal: string,
): JsonObject {
  const stopReason = toStopReason(finishReason, outcome)
  return {
    stop_reason: stopReason,
    stop_sequence: null,
    ...(stopReason === 'refusal'
      ? { stop_details: { type: 'refusal', category: null, explanation: refusal === '' ? null : refusal } }
      : undefined),
  }
}

export function messagesTier(tier: JsonValue | undefined): string {
  return tier === 'priority' ? 'priority' : 'standard'
}

/** The id of a tool call, generated if absent, because clients return the result with it. */
export function toolCallId(id: JsonValue | undefined, messageId: string, index: number): string {
  return stringOf(id) || `toolu_${messageId.replace(/^msg_/, '')}_${index}`
}

/** Reasoning text. Chat has no standard field for it; servers use one of these two. */
export function reasoningOf(message: JsonObject): string {
  return stringOf(message.reasoning_content) || stringOf(message.reasoning)
}

/** Signature of thinking with the signed reasoning of an earlier step of the translation, if any. */
export function signatureOf({ reasoning_details: details }: JsonObject): string {
  return (Array.isArray(details) ? toSignature(details.filter(isJsonObject)) : undefined) ?? ''
}

/** Text of `content`: a string, or text parts as sent by some servers. */
export function contentText(content: JsonValue | undefined): string {
  if (!Array.isArray(content)) return stringOf(content)
  let text = ''
  for (const part of content) if (isJsonObject(part) && part.type === 'text') text += stringOf(part.text)
  return text
}

export function stringOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

type MessageContent = { content: JsonObject[]; calledTools: boolean; refusal: string }

type ReadOptions = { finishReason: JsonValue | undefined; messageId: string; signature: string }

function readMessage(
  message: JsonObject,
  { finishReason, messageId, signature }: ReadOptions,
): MessageContent {
  const content: JsonObject[] = []
  const reasoning = reasoningOf(message)
  // Clients require a signature field. Without signed reasoning its value is unused, because thinking is not
  // sent back to the upstream.
  if (reasoning + signature !== '') content.push({ type: 'thinking', thinking: reasoning, signature })
  const refusal = stringOf(message.refusal)
  const text = contentText(message.content) + refusal
  content.push(...citedBlocks(text, message.annotations))
  const calls = message.tool_calls ?? []
  if (!Array.isArray(calls)) throw invalidResponse('tool_calls is not a list')
  let calledTools = false
  for (const [index, call] of calls.entries()) {
    const block = toToolUse(call, index, messageId)
    if (block === undefined) {
      // The length limit truncated the last call, and incomplete arguments are unusable.
      if (finishReason === 'length' && index === calls.length - 1) break
      throw invalidResponse('the arguments of a tool call are not a JSON object')
    }
    calledTools = true
    content.push(block)
  }
  return { content, calledTools, refusal }
}

function toToolUse(call: JsonValue, index: number, messageId: string): JsonObject | undefined {
  if (!isJsonObject(call) || !isJsonObject(call.function) || typeof call.function.name !== 'string') {
    throw invalidResponse('a tool call without a function')
  }
  const { name, arguments: text } = call.function
  const input = parseArguments(text)
  return (
    input && {
      type: 'tool_use',
      id: toolCallId(call.id, messageId, index),
      name,
      input,
      caller: { type: 'direct' },
    }
  )
}

/** Parses arguments. Some servers omit empty arguments, and some send an object in place of a string. */
function parseArguments(text: JsonValue | undefined): JsonObject | undefined {
  if (text === undefined || text === null || text === '') return {}
  return typeof text === 'string' ? parseExactObject(text) : isJsonObject(text) ? text : undefined
}
