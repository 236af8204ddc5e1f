import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import {
  type ContentReader,
  type GuardedText,
  logprobsPath,
  numberOf,
  objectsIn,
  readableObjectsIn,
  stringOf,
  type TextPart,
} from './content-reader.ts'
import { textParts } from './parts.ts'
import { promptTexts, userText } from './prompt.ts'
import type { Reading } from './reading.ts'

/** Chat completions. https://platform.openai.com/docs/api-reference/chat */
export const chatContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  // Some services accept a `prompt` instead of messages.
  request: ({ messages, prompt, prediction }, reading) => [
    ...messageTexts(messages, reading),
    ...promptTexts(prompt),
    ...predictedTexts(prediction, reading),
  ],
  reply: ({ choices }, reading) =>
    objectsIn(choices).map(([index, choice]): GuardedText => {
      const message = objectOf(choice, 'message')
      const parts = partsOf(message, ['choices', index, 'message'], reading)
      return {
        role: stringOf(message['role']),
        separator: ' ',
        parts: parts.map((part, position) =>
          position === 0 ? { ...part, logprobs: logprobsPath(choice, ['choices', index]) } : part,
        ),
      }
    }),
  event({ choices }, found, reading) {
    for (const [position, choice] of objectsIn(choices)) {
      const element = numberOf(choice['index'], position)
      const { delta, message } = choice
      const echo = logprobsPath(choice, ['choices', position])
      const content = isJsonObject(delta) ? delta['content'] : undefined
      const refusal = isJsonObject(delta) ? delta['refusal'] : undefined
      const path = ['choices', position, 'delta', 'content']
      if (typeof content === 'string') {
        found({ element, part: 0, text: content, path, repeats: false, logprobs: echo })
      } else if (typeof refusal !== 'string') {
        found({ element, part: 0, text: '', path: [], repeats: false, logprobs: echo })
        for (const { text, path: at } of textParts(content, path, reading)) {
          found({ element, part: 0, text, path: at, repeats: false })
        }
      }
      if (typeof refusal === 'string') {
        const at = ['choices', position, 'delta', 'refusal']
        const isAlone = typeof content !== 'string'
        found({
          element,
          part: 1,
          text: refusal,
          path: at,
          repeats: false,
          logprobs: isAlone ? echo : undefined,
        })
      }
      const transcript = isJsonObject(delta) ? objectOf(delta, 'audio')['transcript'] : undefined
      if (typeof transcript === 'string') {
        const at = ['choices', position, 'delta', 'audio', 'transcript']
        found({ element, part: 2, text: transcript, path: at, repeats: false })
      }
      // Some servers send the whole message at the end.
      if (!isJsonObject(message)) continue
      for (const { text, path: at } of partsOf(message, ['choices', position, 'message'], reading)) {
        found({ element, part: partNumbers.get(at.at(-1)) ?? 0, text, path: at, repeats: true })
      }
    }
  },
}

const partNumbers: ReadonlyMap<unknown, number> = new Map([
  ['refusal', 1],
  ['transcript', 2],
])

/** Returns one text per message. */
export function messageTexts(messages: JsonValue | undefined, reading: Reading): GuardedText[] {
  return readableObjectsIn(messages).map(([index, message]) => ({
    role: stringOf(message['role']),
    separator: ' ',
    parts: partsOf(message, ['messages', index], reading),
  }))
}

/** Members of a message with reasoning of the model, by server. */
const reasoningMembers = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'thinking',
  'thinking_blocks',
]

/** Returns the texts of a message: content, refusal, transcript and, in a request, reasoning. */
function partsOf(message: JsonObject, path: JsonPath, reading: Reading): TextPart[] {
  const parts = textParts(message['content'], [...path, 'content'], reading)
  const { refusal } = message
  const { transcript } = objectOf(message, 'audio')
  if (typeof refusal === 'string' && refusal !== '') parts.push({ text: refusal, path: [...path, 'refusal'] })
  if (typeof transcript === 'string' && transcript !== '') {
    parts.push({ text: transcript, path: [...path, 'audio', 'transcript'] })
  }
  if (reading.phase === 'response') return parts
  for (const name of reasoningMembers) parts.push(...textParts(message[name], [...path, name], reading))
  return parts
}

/** Returns the predicted output of a request. */
function predictedTexts(prediction: JsonValue | undefined, reading: Reading): GuardedText[] {
  if (!isJsonObject(prediction)) return []
  const parts = textParts(prediction['content'], ['prediction', 'content'], reading)
  return parts.length === 0 ? [] : [{ ...userText('', []), separator: ' ', parts }]
}

function objectOf(value: JsonObject, name: string): JsonObject {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {}
}
