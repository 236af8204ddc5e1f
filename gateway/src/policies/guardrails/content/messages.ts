import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { CheckFailure } from '../guard.ts'
import {
  type ContentReader,
  type GuardedText,
  joinedText,
  numberOf,
  objectsIn,
  optionalElement,
  readableObjectsIn,
  type StreamPiece,
  stringOf,
  type TextPart,
} from './content-reader.ts'
import { textParts, textsOfPart } from './parts.ts'
import type { Reading } from './reading.ts'
import { argumentPart, argumentTexts, definitionTexts } from './scopes/tools.ts'

/** Anthropic's messages. https://docs.anthropic.com/en/api/messages */
export const messagesContent: ContentReader = {
  separator: ' ',
  dropsEmptied: true,
  emptyLogprobs: 'null',
  request(body, reading) {
    const { system, messages } = body
    const instructions: GuardedText = {
      role: 'system',
      separator: '\n',
      parts: textParts(system, ['system'], reading),
    }
    const texts = readableObjectsIn(messages).flatMap(([index, { role, content }]): GuardedText[] => {
      const path = ['messages', index, 'content']
      const parts = textParts(content, path, reading)
      return [{ role: stringOf(role), separator: ' ', parts }, ...inputTexts(content, path, reading)]
    })
    texts.push(...definitionTexts(body, reading))
    return joinedText(instructions) === '' ? texts : [instructions, ...texts]
  },
  reply: ({ content }, reading) =>
    objectsIn(content).flatMap(([index, block]): GuardedText[] => {
      const path = ['content', index]
      const parts = textsOfPart(block, path, reading)
      return [
        { role: 'assistant', separator: ' ', parts },
        ...argumentTexts(block, ['input'], { path, reading }),
      ]
    }),
  event(event, found, reading) {
    const { index, delta, content_block: block, message } = event
    if (isJsonObject(message)) {
      for (const [element, opening] of objectsIn(message['content'])) {
        reportBlock(opening, element, { path: ['message', 'content', element], found, reading })
      }
    }
    const at = { element: numberOf(index, 0), part: 0, repeats: false }
    if (isJsonObject(block)) reportBlock(block, at.element, { path: ['content_block'], found, reading })
    if (!isJsonObject(delta) || event['type'] === 'message_delta') return
    const { type, text, content, partial_json: json, thinking } = delta
    if (typeof type === 'string' && !deltaTypes.has(type)) reading.reportUnknown(type)
    if (typeof text === 'string') found({ ...at, text, path: ['delta', 'text'] })
    if (typeof content === 'string') found({ ...at, text: content, path: ['delta', 'content'] })
    if (typeof json === 'string' && reading.scopes?.has('toolInput') === true) {
      const element = optionalElement(at.element, 'toolInput')
      found({ ...at, element, text: json, path: ['delta', 'partial_json'], scope: 'toolInput' })
    }
    if (typeof thinking === 'string' && reading.scopes?.has('reasoning') === true) {
      const element = optionalElement(at.element, 'reasoning')
      found({ ...at, element, text: thinking, path: ['delta', 'thinking'], scope: 'reasoning' })
    }
  },
}

type BlockReport = { path: JsonPath; found(piece: StreamPiece): void; reading: Reading }

/** Reports the texts of a block that starts. A block without text has a place among the texts. */
function reportBlock(block: JsonObject, element: number, { path, found, reading }: BlockReport): void {
  const parts = textsOfPart(block, path, reading)
  const isShown = ({ scope }: TextPart) => scope !== 'reasoning'
  if (!parts.some(isShown)) found({ element, part: 0, text: '', path: [], repeats: false })
  for (const [part, { text, path: at, scope }] of parts.entries()) {
    const place = scope === 'reasoning' ? optionalElement(element, scope) : element
    found({ element: place, part, text, path: at, repeats: false, scope })
  }
  // Providers send the input in deltas, and would send it twice here.
  if (reading.scopes?.has('toolInput') === true && argumentPart(block['input'], []) !== undefined)
    throw new CheckFailure('tool input outside of deltas')
}

/** Returns the inputs of the tool calls of a message. */
function inputTexts(content: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  if (reading.scopes?.has('toolInput') !== true) return []
  return objectsIn(content).flatMap(([index, block]) =>
    argumentTexts(block, ['input'], { path: [...path, index], reading }),
  )
}

const deltaTypes: ReadonlySet<string> = new Set([
  'text_delta',
  'input_json_delta',
  'citations_delta',
  'thinking_delta',
  'signature_delta',
  'compaction_delta',
])
