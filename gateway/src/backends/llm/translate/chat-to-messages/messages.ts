import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { parseNestedObject } from '../exact-json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { textBlocks, toContent } from './content.ts'
import { thinkingBlocks } from './signed-thinking.ts'

/** A conversation in the messages API: the system prompt is separate from the turns. */
export type Conversation = { system: JsonValue | undefined; messages: JsonObject[] }

/**
 * Translates the `messages` of a chat request. All system and developer messages at any position become the
 * system prompt, in order. Consecutive tool results become one user turn, as required by the messages API.
 */
export function toMessages(value: JsonValue | undefined, refusals: Refusals): Conversation {
  const system: JsonObject[] = []
  const messages: JsonObject[] = []
  if (!Array.isArray(value)) {
    refusals.add('messages', 'must be a list')
    return { system: undefined, messages }
  }
  let results: JsonObject[] | undefined
  for (const [index, message] of value.entries()) {
    const path = `messages[${index}]`
    if (!isJsonObject(message)) {
      refusals.add(path, 'must be an object')
      continue
    }
    if (message.role === 'tool') {
      if (results === undefined) {
        results = []
        messages.push({ role: 'user', content: results })
      }
      results.push(toToolResult(message, path, refusals))
      continue
    }
    if (message.role === 'system' || message.role === 'developer') {
      refusals.addUnknown(message, plainFields, path)
      system.push(...textBlocks(message.content, `${path}.content`, refusals))
      continue
    }
    results = undefined
    const turn = toTurn(message, path, refusals)
    if (turn !== undefined) messages.push(turn)
  }
  return { system: joinedSystem(system), messages }
}

/** `name` has no counterpart and is removed: the messages API has two roles without names. */
const plainFields: ReadonlySet<string> = new Set(['role', 'content', 'name'])

/** A single plain prompt becomes a string. */
function joinedSystem(blocks: JsonObject[]): JsonValue | undefined {
  const [only] = blocks
  if (only === undefined) return undefined
  return blocks.length === 1 && only.cache_control === undefined ? (only.text ?? '') : blocks
}

function toTurn(message: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  if (message.role === 'user') {
    refusals.addUnknown(message, plainFields, path)
    return { role: 'user', content: toContent(message.content, `${path}.content`, refusals) }
  }
  if (message.role === 'assistant') return toAssistantTurn(message, path, refusals)
  refusals.add(`${path}.role`, 'must be system, developer, user, assistant or tool')
  return undefined
}

const assistantFields: ReadonlySet<string> = new Set([
  ...['role', 'content', 'name', 'refusal', 'tool_calls'],
  // Response fields that clients send back: contained in the text, or unusable without a signature.
  ...['annotations', 'reasoning_content', 'reasoning', 'reasoning_details'],
])

function toAssistantTurn(message: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(message, assistantFields, path)
  const blocks = isAbsent(message.content) ? [] : textBlocks(message.content, `${path}.content`, refusals)
  if (typeof message.refusal === 'string' && message.refusal !== '')
    blocks.push({ type: 'text', text: message.refusal })
  const calls = isAbsent(message.tool_calls) ? [] : message.tool_calls
  if (!Array.isArray(calls)) {
    refusals.add(`${path}.tool_calls`, 'must be a list')
    return undefined
  }
  for (const [index, call] of calls.entries())
    blocks.push(toToolUse(call, `${path}.tool_calls[${index}]`, refusals))
  const [only] = blocks
  // The messages API rejects turns without content.
  if (only === undefined) return undefined
  const thinking = thinkingBlocks(message.reasoning_details)
  if (thinking.length > 0) return { role: 'assistant', content: [...thinking, ...blocks] }
  const isPlain = blocks.length === 1 && only.type === 'text' && only.cache_control === undefined
  return { role: 'assistant', content: isPlain ? (only.text ?? '') : blocks }
}

function toToolUse(call: JsonValue, path: string, refusals: Refusals): JsonObject {
  const block: JsonObject = { type: 'tool_use', id: '', name: '', input: {} }
  if (!isJsonObject(call)) {
    refusals.add(path, 'must be an object')
    return block
  }
  if (call.type !== 'function' || !isJsonObject(call.function)) {
    refusals.add(`${path}.type`, 'only calls of functions can be translated for the messages API')
    return block
  }
  const { name, arguments: text } = call.function
  if (typeof call.id === 'string') block.id = call.id
  else refusals.add(`${path}.id`, 'must be a string')
  if (typeof name === 'string') block.name = name
  else refusals.add(`${path}.function.name`, 'must be a string')
  // Models often omit the arguments of functions without parameters.
  const input = text === '' ? {} : typeof text === 'string' ? parseNestedObject(text) : undefined
  if (input !== undefined) block.input = input
  else refusals.add(`${path}.function.arguments`, 'must be a JSON object in a string')
  return block
}

const toolFields: ReadonlySet<string> = new Set(['role', 'content', 'tool_call_id', 'name'])

function toToolResult(message: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(message, toolFields, path)
  const { tool_call_id: id, content } = message
  if (typeof id !== 'string') refusals.add(`${path}.tool_call_id`, 'must be a string')
  return {
    type: 'tool_result',
    tool_use_id: typeof id === 'string' ? id : '',
    content: typeof content === 'string' ? content : textBlocks(content, `${path}.content`, refusals),
  }
}
