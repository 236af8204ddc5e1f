import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json.ts'
import type { JsonPath } from '../../../lib/json-splice.ts'
import {
  type ContentReader,
  echoAt,
  type GuardedText,
  numberOf,
  objectsIn,
  readableObjectsIn,
  stringOf,
  type TextPart,
  textParts,
} from './content.ts'
import { promptTexts } from './prompt.ts'

/** Chat completions. https://platform.openai.com/docs/api-reference/chat */
export const chatContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  noEcho: 'null',
  // Some services take a `prompt` in place of messages.
  request: ({ messages, prompt }) => [...messageTexts(messages), ...promptTexts(prompt)],
  reply: ({ choices }) =>
    objectsIn(choices).map(([index, choice]): GuardedText => {
      const message = objectOf(choice, 'message')
      const parts = partsOf(message, ['choices', index, 'message'])
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
      const refusal = isJsonObject(delta) ? delta['refusal'] : undefined
      const path = ['choices', position, 'delta', 'content']
      if (typeof content === 'string') {
        found({ element, part: 0, text: content, path, repeats: false, echo })
      } else if (typeof refusal !== 'string') {
        found({ element, part: 0, text: '', path: [], repeats: false, echo })
        for (const { text, path: at } of textParts(content, path)) {
          found({ element, part: 0, text, path: at, repeats: false })
        }
      }
      if (typeof refusal === 'string') {
        const at = ['choices', position, 'delta', 'refusal']
        const isAlone = typeof content !== 'string'
        found({ element, part: 1, text: refusal, path: at, repeats: false, echo: isAlone ? echo : undefined })
      }
      // Some servers end with the whole message.
      if (!isJsonObject(message)) continue
      for (const { text, path: at } of partsOf(message, ['choices', position, 'message'])) {
        found({ element, part: at.at(-1) === 'refusal' ? 1 : 0, text, path: at, repeats: true })
      }
    }
  },
}

/** The texts of messages, one for each. */
export function messageTexts(messages: JsonValue | undefined): GuardedText[] {
  return readableObjectsIn(messages).map(([index, message]) => ({
    role: stringOf(message['role']),
    separator: ' ',
    parts: partsOf(message, ['messages', index]),
  }))
}

/** What a message says, and with what words it refuses. */
function partsOf({ content, refusal }: JsonObject, path: JsonPath): TextPart[] {
  const parts = textParts(content, [...path, 'content'])
  return typeof refusal === 'string' && refusal !== ''
    ? [...parts, { text: refusal, path: [...path, 'refusal'] }]
    : parts
}

function objectOf(value: JsonObject, name: string): JsonObject {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {}
}
