import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { fromSignature } from '../gemini-to-chat/signature.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { eachPart, joinedText, textTypes, toPart } from './content.ts'

/** Messages in construction. */
type Conversation = {
  readonly messages: JsonObject[]
  /** The last message, if further calls of tools belong to it. */
  assistant: JsonObject | undefined
  /** Parts of outputs of tools that are not text. They follow the last output as a user's message. */
  attachments: JsonObject[]
  /** Signed thinking in front of the next message of the assistant. */
  thinking: JsonObject[]
}

/** `signedThinking`: reasoning of earlier responses returns in `reasoning_details`. */
export type RequestForm = { readonly signedThinking: boolean }

/** Refusals of a translation, with the form of its result. */
type FormRefusals = Refusals & RequestForm

/** Translates `instructions` and `input` of a responses request to the `messages` of a chat request. */
export function toMessages({ instructions, input }: JsonObject, refusals: FormRefusals): JsonObject[] {
  const conversation: Conversation = { messages: [], assistant: undefined, attachments: [], thinking: [] }
  const { messages } = conversation
  if (typeof instructions === 'string' && instructions !== '')
    messages.push({ role: 'system', content: instructions })
  else if (!isAbsent(instructions) && instructions !== '') refusals.add('instructions', 'must be a string')
  if (typeof input === 'string') {
    messages.push({ role: 'user', content: input })
    return messages
  }
  if (!Array.isArray(input)) {
    refusals.add('input', 'must be a string or a list of items')
    return messages
  }
  for (const [index, item] of input.entries()) {
    const path = `input[${index}]`
    if (isJsonObject(item)) addItem(conversation, item, path, refusals)
    else refusals.add(path, 'must be an object')
  }
  flushAttachments(conversation)
  return messages
}

function addItem(conversation: Conversation, item: JsonObject, path: string, refusals: FormRefusals): void {
  switch (item.type ?? 'message') {
    case 'message':
      flushAttachments(conversation)
      addMessage(conversation, item, path, refusals)
      return
    case 'function_call':
      flushAttachments(conversation)
      addCall(conversation, item, path, refusals)
      return
    case 'function_call_output':
      addOutput(conversation, item, path, refusals)
      return
    case 'reasoning':
      // Chat servers reject reasoning of earlier turns, or ignore it.
      if (refusals.signedThinking && typeof item.encrypted_content === 'string')
        conversation.thinking.push(...fromSignature(item.encrypted_content))
      return
    case 'item_reference':
      refusals.add(`${path}.id`, 'the provider stores no items: send the item itself')
      return
    default:
      refusals.add(`${path}.type`, `items of type "${item.type}" cannot be translated for chat completions`)
  }
}

function addMessage(conversation: Conversation, item: JsonObject, path: string, refusals: Refusals): void {
  const { role, content } = item
  const at = `${path}.content`
  conversation.assistant = undefined
  if (role === 'user') {
    conversation.messages.push({ role, content: userContent(content, at, refusals) })
  } else if (role === 'system' || role === 'developer') {
    // Servers other than OpenAI's have no developer role.
    conversation.messages.push({ role: 'system', content: joinedText(content, at, refusals) })
  } else if (role === 'assistant') {
    const message = { ...assistantMessage(content, at, refusals), ...takeThinking(conversation) }
    conversation.messages.push(message)
    conversation.assistant = message
  } else refusals.add(`${path}.role`, 'must be user, assistant, system or developer')
}

/** A single text as a string, which all servers accept. */
function userContent(content: JsonValue | undefined, path: string, refusals: Refusals): JsonValue {
  if (typeof content === 'string') return content
  const parts: JsonObject[] = []
  eachPart(content, path, refusals, (part, at) => {
    const translated = toPart(part, at, refusals)
    if (translated !== undefined) parts.push(translated)
  })
  const [only] = parts
  return parts.length === 1 && only?.type === 'text' ? (only.text ?? '') : parts
}

function assistantMessage(content: JsonValue | undefined, path: string, refusals: Refusals): JsonObject {
  if (typeof content === 'string') return { role: 'assistant', content }
  let text = ''
  let refusal = ''
  eachPart(content, path, refusals, (part, at) => {
    if (textTypes.has(part.type ?? '') && typeof part.text === 'string') text += part.text
    else if (part.type === 'refusal' && typeof part.refusal === 'string') refusal += part.refusal
    else refusals.add(`${at}.type`, 'must be output_text or refusal')
  })
  return { role: 'assistant', content: text + refusal }
}

/** Adds a call to the message of its turn: chat requires all calls of a turn in one message. */
function addCall(conversation: Conversation, item: JsonObject, path: string, refusals: Refusals): void {
  const { call_id: id, name, arguments: args } = item
  for (const [key, value] of Object.entries({ call_id: id, name, arguments: args })) {
    if (typeof value !== 'string') refusals.add(`${path}.${key}`, 'must be a string')
  }
  const call = {
    id: id ?? '',
    type: 'function',
    function: { name: name ?? '', arguments: args === '' ? '{}' : (args ?? '') },
  }
  if (conversation.assistant === undefined) {
    conversation.assistant = { role: 'assistant', content: null, ...takeThinking(conversation) }
    conversation.messages.push(conversation.assistant)
  }
  const { assistant } = conversation
  assistant.tool_calls = [...(Array.isArray(assistant.tool_calls) ? assistant.tool_calls : []), call]
}

function takeThinking(conversation: Conversation): JsonObject | undefined {
  const { thinking } = conversation
  conversation.thinking = []
  return thinking.length === 0 ? undefined : { reasoning_details: thinking }
}

function addOutput(conversation: Conversation, item: JsonObject, path: string, refusals: Refusals): void {
  const { call_id: id, output } = item
  if (typeof id !== 'string') refusals.add(`${path}.call_id`, 'must be a string')
  const texts: string[] = []
  const others: JsonObject[] = []
  if (typeof output === 'string') texts.push(output)
  else {
    eachPart(output, `${path}.output`, refusals, (part, at) => {
      const translated = toPart(part, at, refusals)
      if (typeof translated?.text === 'string') texts.push(translated.text)
      else if (translated !== undefined) others.push(translated)
    })
  }
  conversation.assistant = undefined
  conversation.messages.push({ role: 'tool', tool_call_id: id ?? '', content: texts.join('\n\n') })
  if (others.length === 0) return
  const introduction = { type: 'text', text: `Attachments of the result of tool call ${String(id)}:` }
  conversation.attachments.push(introduction, ...others)
}

/** Chat's tool messages contain only text, and must follow the calls without other messages between them. */
function flushAttachments(conversation: Conversation): void {
  if (conversation.attachments.length === 0) return
  conversation.messages.push({ role: 'user', content: conversation.attachments })
  conversation.attachments = []
}
