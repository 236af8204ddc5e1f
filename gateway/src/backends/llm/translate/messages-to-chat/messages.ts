import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { eachBlock, joinedText, toPart } from './content.ts'

/** Translates `system` and `messages` of a messages request to the `messages` of a chat request. */
export function toChatMessages(body: JsonObject, refusals: Refusals): JsonObject[] {
  const translated: JsonObject[] = []
  if (!isAbsent(body.system)) pushSystem(translated, body.system, 'system', refusals)
  if (!Array.isArray(body.messages)) {
    refusals.add('messages', 'must be a list')
    return translated
  }
  for (const [index, message] of body.messages.entries()) {
    const path = `messages[${index}]`
    if (!isJsonObject(message)) {
      refusals.add(path, 'must be an object')
      continue
    }
    refusals.addUnknown(message, messageFields, path)
    const content = `${path}.content`
    if (message.role === 'user') pushUserTurn(translated, message.content, content, refusals)
    else if (message.role === 'assistant') pushAssistantTurn(translated, message.content, content, refusals)
    else if (message.role === 'system') pushSystem(translated, message.content, content, refusals)
    else refusals.add(`${path}.role`, 'must be user, assistant or system')
  }
  const last = body.messages.at(-1)
  if (isJsonObject(last) && last.role === 'assistant') {
    // The messages API continues this text; chat would start a new response.
    refusals.add(
      `messages[${body.messages.length - 1}]`,
      'an answer begun in the request cannot be continued by chat completions',
    )
  }
  return translated
}

const messageFields: ReadonlySet<string> = new Set(['role', 'content'])

function pushSystem(
  translated: JsonObject[],
  system: JsonValue | undefined,
  path: string,
  refusals: Refusals,
): void {
  const text = joinedText(system, path, refusals, '\n\n')
  if (text !== '') translated.push({ role: 'system', content: text })
}

/**
 * Translates a user turn. Tool results become separate messages before the rest of the turn, because chat
 * requires them after the calls.
 */
function pushUserTurn(
  translated: JsonObject[],
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
): void {
  if (typeof content === 'string') {
    translated.push({ role: 'user', content })
    return
  }
  const parts: JsonObject[] = []
  eachBlock(content, path, refusals, (block, blockPath) => {
    if (block.type !== 'tool_result') {
      const part = toPart(block, blockPath, refusals)
      if (part !== undefined) parts.push(part)
      return
    }
    const { message, images } = toToolMessage(block, blockPath, refusals)
    translated.push(message)
    parts.push(...images)
  })
  if (parts.length > 0) translated.push({ role: 'user', content: plainText(parts) ?? parts })
}

/** A single text as a string, which all servers accept. */
function plainText(parts: JsonObject[]): JsonValue | undefined {
  const [only] = parts
  return parts.length === 1 && only?.type === 'text' ? only.text : undefined
}

const resultFields: ReadonlySet<string> = new Set([
  'type',
  'tool_use_id',
  'content',
  'is_error',
  'cache_control',
])

/**
 * Translates a tool result. Chat's tool messages contain only text, so images move to the user message that
 * follows.
 */
function toToolMessage(
  block: JsonObject,
  path: string,
  refusals: Refusals,
): { message: JsonObject; images: JsonObject[] } {
  refusals.addUnknown(block, resultFields, path)
  const { tool_use_id: id, content } = block
  if (typeof id !== 'string') refusals.add(`${path}.tool_use_id`, 'must be a string')
  const texts: JsonObject[] = []
  const images: JsonObject[] = []
  if (typeof content === 'string') texts.push({ type: 'text', text: content })
  else if (!isAbsent(content)) {
    eachBlock(content, `${path}.content`, refusals, (inner, innerPath) => {
      const part = toPart(inner, innerPath, refusals)
      if (part !== undefined) (part.type === 'text' ? texts : images).push(part)
    })
  }
  if (images.length > 0)
    images.unshift({ type: 'text', text: `Attachments of the result of tool call ${id}:` })
  // Chat has no field for failed calls; without a marker the model could interpret the text as a success.
  if (block.is_error === true)
    texts[0] = { type: 'text', text: `The tool call failed: ${texts[0]?.text ?? ''}` }
  const text = texts.length <= 1 ? (texts[0]?.text ?? '') : texts
  return { message: { role: 'tool', tool_call_id: typeof id === 'string' ? id : '', content: text }, images }
}

function pushAssistantTurn(
  translated: JsonObject[],
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
): void {
  if (typeof content === 'string') {
    translated.push({ role: 'assistant', content })
    return
  }
  let text = ''
  const calls: JsonObject[] = []
  eachBlock(content, path, refusals, (block, blockPath) => {
    if (block.type === 'tool_use') calls.push(toToolCall(block, blockPath, refusals))
    else if (block.type === 'text') text += assistantText(block, blockPath, refusals)
    else if (block.type !== 'thinking' && block.type !== 'redacted_thinking') {
      refusals.add(
        `${blockPath}.type`,
        `blocks of type "${block.type}" cannot be translated for chat completions`,
      )
    }
  })
  if (text === '' && calls.length === 0) return
  const toolCalls = calls.length > 0 ? { tool_calls: calls } : undefined
  translated.push({ role: 'assistant', content: text === '' ? null : text, ...toolCalls })
}

function assistantText(block: JsonObject, path: string, refusals: Refusals): string {
  if (typeof block.text === 'string') return block.text
  refusals.add(`${path}.text`, 'must be a string')
  return ''
}

const toolUseFields: ReadonlySet<string> = new Set(['type', 'id', 'name', 'input', 'cache_control', 'caller'])

function toToolCall(block: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(block, toolUseFields, path)
  const { id, name, input } = block
  if (typeof id !== 'string') refusals.add(`${path}.id`, 'must be a string')
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  const text = isJsonObject(input) ? writeJson(input) : undefined
  if (text === undefined) refusals.add(`${path}.input`, 'must be an object')
  return { id: id ?? '', type: 'function', function: { name: name ?? '', arguments: text ?? '' } }
}
