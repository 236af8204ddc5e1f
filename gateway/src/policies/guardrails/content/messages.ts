import { isJsonObject } from '../../../lib/json.ts'
import {
  type ContentReader,
  type GuardedText,
  numberOf,
  objectsIn,
  readableObjectsIn,
  shownText,
  stringOf,
  textParts,
} from './content.ts'

/** Anthropic's messages. https://docs.anthropic.com/en/api/messages */
export const messagesContent: ContentReader = {
  separator: '',
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
      ([index, { text }]): GuardedText => ({
        role: 'assistant',
        separator: '',
        parts: typeof text === 'string' ? [{ text, path: ['content', index, 'text'] }] : [],
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
    if (isJsonObject(block)) found({ ...at, text: stringOf(block['text']), path: ['content_block', 'text'] })
    if (isJsonObject(delta) && typeof delta['text'] === 'string') {
      found({ ...at, text: delta['text'], path: ['delta', 'text'] })
    }
  },
}
