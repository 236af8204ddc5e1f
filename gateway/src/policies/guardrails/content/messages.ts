import { isJsonObject } from '../../../lib/json/json.ts'
import {
  type ContentReader,
  type GuardedText,
  joinedText,
  numberOf,
  objectsIn,
  readableObjectsIn,
  stringOf,
} from './content-reader.ts'
import { textParts, textsOfPart } from './parts.ts'

/** Anthropic's messages. https://docs.anthropic.com/en/api/messages */
export const messagesContent: ContentReader = {
  separator: ' ',
  dropsEmptied: true,
  emptyLogprobs: 'null',
  request({ system, messages }, reading) {
    const instructions: GuardedText = {
      role: 'system',
      separator: '\n',
      parts: textParts(system, ['system'], reading),
    }
    const texts = readableObjectsIn(messages).map(
      ([index, { role, content }]): GuardedText => ({
        role: stringOf(role),
        separator: ' ',
        parts: textParts(content, ['messages', index, 'content'], reading),
      }),
    )
    return joinedText(instructions) === '' ? texts : [instructions, ...texts]
  },
  reply: ({ content }, reading) =>
    objectsIn(content).map(
      ([index, block]): GuardedText => ({
        role: 'assistant',
        separator: ' ',
        parts: textsOfPart(block, ['content', index], reading),
      }),
    ),
  event(event, found, reading) {
    const { index, delta, content_block: block, message } = event
    if (isJsonObject(message)) {
      for (const [element, opening] of objectsIn(message['content'])) {
        const parts = textsOfPart(opening, ['message', 'content', element], reading)
        if (parts.length === 0) found({ element, part: 0, text: '', path: [], repeats: false })
        for (const [part, { text, path }] of parts.entries()) {
          found({ element, part, text, path, repeats: false })
        }
      }
    }
    const at = { element: numberOf(index, 0), part: 0, repeats: false }
    if (isJsonObject(block)) {
      const parts = textsOfPart(block, ['content_block'], reading)
      if (parts.length === 0) found({ ...at, text: '', path: [] })
      for (const [part, { text, path }] of parts.entries()) found({ ...at, part, text, path })
    }
    if (!isJsonObject(delta) || event['type'] === 'message_delta') return
    const { type, text, content } = delta
    if (typeof type === 'string' && !deltaTypes.has(type)) reading.reportUnknown(type)
    if (typeof text === 'string') found({ ...at, text, path: ['delta', 'text'] })
    if (typeof content === 'string') found({ ...at, text: content, path: ['delta', 'content'] })
  },
}

const deltaTypes: ReadonlySet<string> = new Set([
  'text_delta',
  'input_json_delta',
  'citations_delta',
  'thinking_delta',
  'signature_delta',
  'compaction_delta',
])
