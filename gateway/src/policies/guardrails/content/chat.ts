import type { JsonObject } from '../../../lib/json.ts'
import type { JsonPath } from '../../../lib/json-splice.ts'
import {
  type ContentReader,
  echoAt,
  type GuardedText,
  numberOf,
  objectsIn,
  type StreamPiece,
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
      const at = { element, part: 0 }
      const echo = echoAt(choice, ['choices', position])
      found({ ...at, text: '', path: [], repeats: false, echo })
      reportTexts(objectOf(choice, 'delta'), ['choices', position, 'delta', 'content'], {
        ...at,
        found,
        repeats: false,
      })
      // Some servers end with the whole message.
      reportTexts(objectOf(choice, 'message'), ['choices', position, 'message', 'content'], {
        ...at,
        found,
        repeats: true,
      })
    }
  },
}

type Reported = Pick<StreamPiece, 'element' | 'part' | 'repeats'> & { found(piece: StreamPiece): void }

function reportTexts({ content }: JsonObject, path: JsonPath, { found, ...at }: Reported): void {
  for (const part of textParts(content, path)) found({ ...at, ...part })
}

function objectOf(value: JsonObject, name: string): JsonObject {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {}
}
