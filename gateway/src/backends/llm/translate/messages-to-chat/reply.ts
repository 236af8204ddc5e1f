import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { parseExactObject } from '../exact-json.ts'
import { type Outcome, toStopReason } from '../stop-reason.ts'
import { countsFromChat, toMessagesUsage } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'

/** A chat completion as a message. Throws `upstream_invalid` when it is none. */
export function completionToMessage(completion: JsonObject, context: TranslationContext): JsonObject {
  const choice = Array.isArray(completion.choices) ? completion.choices[0] : undefined
  if (!isJsonObject(choice) || !isJsonObject(choice.message))
    throw invalidResponse('it is not a chat completion')
  const head = messageHead(completion, context)
  const { content, calledTools, refusal } = readMessage(choice.message, choice.finish_reason, String(head.id))
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

/** The fields of a message that its first chunk already tells. */
export function messageHead(completion: JsonObject, { requestModel, now }: TranslationContext): JsonObject {
  const { id, model } = completion
  return {
    id: typeof id === 'string' && id !== '' ? id.replace(/^chatcmpl-/, 'msg_') : `msg_${now().toString(36)}`,
    type: 'message',
    role: 'assistant',
    model: typeof model === 'string' && model !== '' ? model : requestModel,
  }
}

/** Why the message ended; of a streamed message, the `delta` of its `message_delta`. */
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

/** The id of a tool call, made up where a server leaves it out: without one its result could not be sent back. */
export function toolCallId(id: JsonValue | undefined, messageId: string, index: number): string {
  return typeof id === 'string' && id !== '' ? id : `toolu_${messageId.replace(/^msg_/, '')}_${index}`
}

/** Reasoning has no standard field in chat; these two are what servers use. */
export function reasoningOf(message: JsonObject): string {
  return stringOf(message.reasoning_content) || stringOf(message.reasoning)
}

/** Text of `content`: a string, or the text parts some servers send. */
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

function readMessage(
  message: JsonObject,
  finishReason: JsonValue | undefined,
  messageId: string,
): MessageContent {
  const content: JsonObject[] = []
  const reasoning = reasoningOf(message)
  // Nobody signed it: the field is there because clients expect it, and the upstream never gets it back.
  if (reasoning !== '') content.push({ type: 'thinking', thinking: reasoning, signature: '' })
  const refusal = stringOf(message.refusal)
  const text = contentText(message.content) + refusal
  if (text !== '') content.push({ type: 'text', text })
  const calls = message.tool_calls ?? []
  if (!Array.isArray(calls)) throw invalidResponse('tool_calls is not a list')
  let calledTools = false
  for (const [index, call] of calls.entries()) {
    const block = toToolUse(call, index, messageId)
    if (block === undefined) {
      // The length limit cut the last call short: half of its arguments are of no use to anybody.
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

/** Some servers write nothing for a call without arguments, and some an object where a string belongs. */
function parseArguments(text: JsonValue | undefined): JsonObject | undefined {
  if (text === undefined || text === null || text === '') return {}
  return typeof text === 'string' ? parseExactObject(text) : isJsonObject(text) ? text : undefined
}
