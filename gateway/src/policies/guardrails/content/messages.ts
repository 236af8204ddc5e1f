import { isJsonObject, type JsonObject } from '../../../lib/json.ts'
import type { JsonPath } from '../../../lib/json-splice.ts'
import {
  type ContentReader,
  type GuardedText,
  numberOf,
  objectsIn,
  readableObjectsIn,
  shownText,
  stringOf,
  type TextPart,
  textParts,
} from './content.ts'

/** Anthropic's messages. https://docs.anthropic.com/en/api/messages */
export const messagesContent: ContentReader = {
  separator: ' ',
  dropsEmptied: true,
  noEcho: 'null',
  request({ system, messages }) {
    const instructions: GuardedText = {
      role: 'system',
      separator: '\n',
      parts: textParts(system, ['system']),
    }
    const texts = readableObjectsIn(messages).map(
      ([index, { role, content }]): GuardedText => ({
        role: stringOf(role),
        separator: ' ',
        parts: textParts(content, ['messages', index, 'content']),
      }),
    )
    return shownText(instructions) === '' ? texts : [instructions, ...texts]
  },
  reply: ({ content }) =>
    objectsIn(content).map(
      ([index, block]): GuardedText => ({
        role: 'assistant',
        separator: ' ',
        parts: partsOf(block, ['content', index]),
      }),
    ),
  event(event, found) {
    const { index, delta, content_block: block, message } = event
    if (isJsonObject(message)) {
      for (const [element, { text }] of objectsIn(message['content'])) {
        const path = ['message', 'content', element, 'text']
        found({ element, part: 0, text: stringOf(text), path, repeats: false })
      }
    }
    const at = { element: numberOf(index, 0), part: 0, repeats: false }
    if (isJsonObject(block)) {
      const parts = partsOf(block, ['content_block'])
      if (parts.length === 0) found({ ...at, text: '', path: [] })
      for (const [part, { text, path }] of parts.entries()) found({ ...at, part, text, path })
    }
    if (isJsonObject(delta) && typeof delta['text'] === 'string') {
      found({ ...at, text: delta['text'], path: ['delta', 'text'] })
    }
  },
}

/** What a block of an answer says: its text, or what a tool of the provider answered. */
function partsOf({ type, text, content }: JsonObject, path: JsonPath): TextPart[] {
  if (typeof text === 'string') return [{ text, path: [...path, 'text'] }]
  const isResult = typeof type === 'string' && type.endsWith('_tool_result')
  return isResult ? textParts(content, [...path, 'content']) : []
}
