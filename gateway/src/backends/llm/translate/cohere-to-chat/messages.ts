import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { eachBlock, joinedText } from '../messages-to-chat/content.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Translates the `messages` of `/v2/chat` to those of chat completions. */
export function toChatMessages(messages: JsonValue | undefined, refusals: Refusals): JsonObject[] {
  if (!Array.isArray(messages)) {
    refusals.add('messages', 'must be a list')
    return []
  }
  return messages.flatMap((message, index): JsonObject[] => {
    const translated = toChatMessage(message, `messages[${index}]`, refusals)
    return translated === undefined ? [] : [translated]
  })
}

function toChatMessage(message: JsonValue, path: string, refusals: Refusals): JsonObject | undefined {
  if (!isJsonObject(message)) {
    refusals.add(path, 'must be an object')
    return undefined
  }
  switch (message.role) {
    case 'system':
      refusals.addUnknown(message, plainFields, path)
      return {
        role: 'system',
        content: joinedText(message.content, `${path}.content`, refusals, '\n\n'),
      }
    case 'user':
      refusals.addUnknown(message, plainFields, path)
      return { role: 'user', content: toUserContent(message.content, `${path}.content`, refusals) }
    case 'assistant':
      return toAssistantMessage(message, path, refusals)
    case 'tool':
      return toToolMessage(message, path, refusals)
    default:
      refusals.add(`${path}.role`, 'must be system, user, assistant or tool')
      return undefined
  }
}

const plainFields: ReadonlySet<string> = new Set(['role', 'content'])
const textFields: ReadonlySet<string> = new Set(['type', 'text'])
const imageFields: ReadonlySet<string> = new Set(['type', 'image_url'])
const urlFields: ReadonlySet<string> = new Set(['url', 'detail'])

function toUserContent(content: JsonValue | undefined, path: string, refusals: Refusals): JsonValue {
  if (typeof content === 'string') return content
  const parts: JsonObject[] = []
  eachBlock(content, path, refusals, (part, partPath) => {
    if (part.type === 'text') parts.push(toText(part, partPath, refusals))
    else if (part.type === 'image_url') parts.push(toImage(part, partPath, refusals))
    else refusals.add(`${partPath}.type`, 'must be text or image_url')
  })
  return plainText(parts) ?? parts
}

/** A single text as a string, which all servers accept. */
function plainText(parts: readonly JsonObject[]): JsonValue | undefined {
  const [only] = parts
  return parts.length === 1 && only?.type === 'text' ? only.text : undefined
}

function toText(part: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(part, textFields, path)
  if (typeof part.text !== 'string') refusals.add(`${path}.text`, 'must be a string')
  return { type: 'text', text: part.text ?? '' }
}

function toImage(part: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(part, imageFields, path)
  const image = isJsonObject(part.image_url) ? part.image_url : {}
  refusals.addUnknown(image, urlFields, `${path}.image_url`)
  const { url, detail } = image
  if (typeof url !== 'string') refusals.add(`${path}.image_url.url`, 'must be a string')
  return { type: 'image_url', image_url: { url: url ?? '', ...(isAbsent(detail) ? undefined : { detail }) } }
}

const assistantFields: ReadonlySet<string> = new Set([
  ...['role', 'content', 'tool_calls', 'tool_plan'],
  // Of the response, which repeats them.
  'citations',
])

/** The plan of a call is text of the model. Thinking is not sent back, because it has no signature. */
function toAssistantMessage(message: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(message, assistantFields, path)
  const { content, tool_plan: plan, tool_calls: calls } = message
  if (!isAbsent(plan) && typeof plan !== 'string') refusals.add(`${path}.tool_plan`, 'must be a string')
  const texts = [typeof plan === 'string' ? plan : '', assistantText(content, `${path}.content`, refusals)]
  const text = texts.filter((part) => part !== '').join('\n\n')
  if (isAbsent(calls) || (Array.isArray(calls) && calls.length === 0))
    return { role: 'assistant', content: text }
  if (!Array.isArray(calls)) {
    refusals.add(`${path}.tool_calls`, 'must be a list')
    return { role: 'assistant', content: text }
  }
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    tool_calls: calls.map((call, index) => toToolCall(call, `${path}.tool_calls[${index}]`, refusals)),
  }
}

function assistantText(content: JsonValue | undefined, path: string, refusals: Refusals): string {
  if (isAbsent(content)) return ''
  if (typeof content === 'string') return content
  const texts: string[] = []
  eachBlock(content, path, refusals, (part, partPath) => {
    if (part.type === 'text') texts.push(String(toText(part, partPath, refusals).text))
    else if (part.type !== 'thinking') refusals.add(`${partPath}.type`, 'must be text or thinking')
  })
  return texts.join('')
}

function toToolCall(call: JsonValue, path: string, refusals: Refusals): JsonObject {
  const made = isJsonObject(call) ? call.function : undefined
  if (!isJsonObject(call) || !isJsonObject(made) || typeof made.name !== 'string') {
    refusals.add(path, 'must be an object with a function that has a name')
    return {}
  }
  if (typeof call.id !== 'string') refusals.add(`${path}.id`, 'must be a string')
  const { name, arguments: given } = made
  if (!isAbsent(given) && typeof given !== 'string')
    refusals.add(`${path}.function.arguments`, 'must be a string')
  const args = typeof given === 'string' && given !== '' ? given : '{}'
  return { id: call.id ?? '', type: 'function', function: { name, arguments: args } }
}

const toolFields: ReadonlySet<string> = new Set(['role', 'content', 'tool_call_id'])

function toToolMessage(message: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(message, toolFields, path)
  const { tool_call_id: id, content } = message
  if (typeof id !== 'string') refusals.add(`${path}.tool_call_id`, 'must be a string')
  const result = { role: 'tool', tool_call_id: id ?? '' }
  if (typeof content === 'string') return { ...result, content }
  const parts: JsonObject[] = []
  eachBlock(content, `${path}.content`, refusals, (part, partPath) => {
    if (part.type === 'text') parts.push(toText(part, partPath, refusals))
    else if (part.type === 'document') parts.push(toDocumentText(part, partPath, refusals))
    else refusals.add(`${partPath}.type`, 'must be text or document')
  })
  return { ...result, content: parts.length === 0 ? '' : (plainText(parts) ?? parts) }
}

/** The data of a document, a text or JSON. Its id serves citations only. */
function toDocumentText(part: JsonObject, path: string, refusals: Refusals): JsonObject {
  const data = isJsonObject(part.document) ? part.document.data : undefined
  const text = typeof data === 'string' ? data : isJsonObject(data) ? writeJson(data) : undefined
  if (text === undefined) refusals.add(`${path}.document.data`, 'must be a string or an object')
  return { type: 'text', text: text ?? '' }
}
