import { isJsonObject, type JsonObject } from '../../../lib/json.ts'
import {
  type ContentReader,
  echoAt,
  type GuardedText,
  numberOf,
  objectsIn,
  stringOf,
  textParts,
} from './content.ts'

/** Chat completions. https://platform.openai.com/docs/api-reference/chat */
export const chatContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  noEcho: 'null',
  request: ({ messages }) =>
    objectsIn(messages).map(([index, { role, content }]) => ({
      role: stringOf(role),
      separator: ' ',
      parts: textParts(content, ['messages', index, 'content']),
    })),
  reply: ({ choices }) =>
    objectsIn(choices).map(([index, choice]): GuardedText => {
      const message = objectOf(choice, 'message')
      const parts = textParts(message['content'], ['choices', index, 'message', 'content'])
      return {
        role: stringOf(message['role']),
        separator: ' ',
        parts: parts.map((part, position) =>
          position === 0 ? { ...part, echo: echoAt(choice, ['choices', index]) } : part,
        ),
      }
    }),
  event({ choices }, found) {
    for (const [position, choice] of objectsIn(choices)) {
      const element = numberOf(choice['index'], position)
      const { delta, message } = choice
      const echo = echoAt(choice, ['choices', position])
      const content = isJsonObject(delta) ? delta['content'] : undefined
      const path = ['choices', position, 'delta', 'content']
      if (typeof content === 'string') {
        found({ element, part: 0, text: content, path, repeats: false, echo })
      } else {
        found({ element, part: 0, text: '', path: [], repeats: false, echo })
        for (const { text, path: at } of textParts(content, path)) {
          found({ element, part: 0, text, path: at, repeats: false })
        }
      }
      if (message === undefined) continue
      // Some servers end with the whole message.
      const whole = isJsonObject(message) ? message['content'] : undefined
      for (const { text, path: at } of textParts(whole, ['choices', position, 'message', 'content'])) {
        found({ element, part: 0, text, path: at, repeats: true })
      }
    }
  },
}

function objectOf(value: JsonObject, name: string): JsonObject {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {}
}
