import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { fromSignature } from '../gemini-to-chat/signature.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import type { FormRefusals } from './chat-form.ts'
import { eachBlock, joinedText, toPart } from './content.ts'

/** Translates `system` and `messages` of a messages request to the `messages` of a chat request. */
export function toChatMessages(body: JsonObject, refusals: FormRefusals): JsonObject[] {
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
  refusals: FormRefusals,
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
  refusals: FormRefusals,
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
      const isContent = part?.type === 'text' || refusals.form.mediaInResults
      if (part !== undefined) (isContent ? texts : images).push(part)
    })
  }
  if (images.length > 0)
    images.unshift({ type: 'text', text: `Attachments of the result of tool call ${id}:` })
  // Chat has no field for failed calls; without a marker the model could interpret the text as a success.
  if (block.is_error === true) {
    const [first] = texts
    const isText = first?.type === 'text'
    const text = `The tool call failed: ${isText ? (first.text ?? '') : ''}`
    texts.splice(0, isText ? 1 : 0, { type: 'text', text })
  }
  const text = plainText(texts) ?? (texts.length === 0 ? '' : texts)
  return { message: { role: 'tool', tool_call_id: typeof id === 'string' ? id : '', content: text }, images }
}

function pushAssistantTurn(
  translated: JsonObject[],
  content: JsonValue | undefined,
  path: string,
  refusals: FormRefusals,
): void {
  if (typeof content === 'string') {
    translated.push({ role: 'assistant', content })
    return
  }
  let turn = newTurn()
  const turns = [turn]
  eachBlock(content, path, refusals, (block, blockPath) => {
    if (block.type === 'tool_use') turn.calls.push(toToolCall(block, blockPath, refusals))
    else if (block.type === 'text') turn.text += assistantText(block, blockPath, refusals)
    else if (block.type === 'thinking' || block.type === 'redacted_thinking') {
      const details = refusals.form.signedThinking ? fromSignature(String(block.signature ?? '')) : []
      if (details.length === 0) return
      // Reasoning is at the beginning of a message.
      if (!isEmpty(turn)) {
        turn = newTurn()
        turns.push(turn)
      }
      for (const detail of details) turn.details.push(detail)
    } else {
      refusals.add(
        `${blockPath}.type`,
        `blocks of type "${block.type}" cannot be translated for ${refusals.form.upstream}`,
      )
    }
  })
  for (const { text, calls, details } of turns.filter((each) => !isEmpty(each))) {
    const toolCalls = calls.length > 0 ? { tool_calls: calls } : undefined
    const reasoning = details.length > 0 ? { reasoning_details: details } : undefined
    translated.push({ role: 'assistant', content: text === '' ? null : text, ...reasoning, ...toolCalls })
  }
}

/** A message of the assistant in construction. */
type AssistantTurn = { text: string; readonly calls: JsonObject[]; readonly details: JsonObject[] }

function newTurn(): AssistantTurn {
  return { text: '', calls: [], details: [] }
}

function isEmpty({ text, calls }: AssistantTurn): boolean {
  return text === '' && calls.length === 0
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
