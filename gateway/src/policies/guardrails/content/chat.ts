import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import {
  type ContentReader,
  type GuardedText,
  logprobsPath,
  numberOf,
  objectsIn,
  optionalElement,
  readableObjectsIn,
  type StreamPiece,
  stringOf,
  type TextPart,
} from './content-reader.ts'
import { textParts, withScope } from './parts.ts'
import { promptTexts, userText } from './prompt.ts'
import type { Reading } from './reading.ts'
import { argumentTexts, definitionTexts } from './scopes/tools.ts'

/** Chat completions. https://platform.openai.com/docs/api-reference/chat */
export const chatContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  // Some services accept a `prompt` instead of messages.
  request: (body, reading) => [
    ...messageTexts(body['messages'], reading),
    ...promptTexts(body['prompt']),
    ...predictedTexts(body['prediction'], reading),
    ...definitionTexts(body, reading),
  ],
  reply: ({ choices }, reading) =>
    objectsIn(choices).flatMap(([index, choice]): GuardedText[] => {
      const message = objectOf(choice, 'message')
      const path = ['choices', index, 'message']
      const parts = partsOf(message, path, reading)
      const text: GuardedText = {
        role: stringOf(message['role']),
        separator: ' ',
        parts: parts.map((part, position) =>
          position === 0 ? { ...part, logprobs: logprobsPath(choice, ['choices', index]) } : part,
        ),
      }
      return [text, ...optionalTexts(message, path, reading)]
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
        for (const { text, path: at, scope } of textParts(content, path, reading)) {
          const place = scope === 'reasoning' ? optionalElement(element, scope) : element
          found({ element: place, part: 0, text, path: at, repeats: false, scope })
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
      if (isJsonObject(delta) && reading.scopes !== undefined)
        reportOptional(delta, element, {
          path: ['choices', position, 'delta'],
          reading,
          found,
          repeats: false,
        })
      // Some servers send the whole message at the end.
      if (!isJsonObject(message)) continue
      const whole = ['choices', position, 'message']
      for (const { text, path: at, scope } of partsOf(message, whole, reading)) {
        const part = partNumbers.get(at.at(-1)) ?? 0
        const place = scope === 'reasoning' ? optionalElement(element, scope) : element
        found({ element: place, part, text, path: at, repeats: true, scope })
      }
      if (reading.scopes !== undefined)
        reportOptional(message, element, { path: whole, reading, found, repeats: true })
    }
  },
}

const partNumbers: ReadonlyMap<unknown, number> = new Map([
  ['refusal', 1],
  ['transcript', 2],
])

/** Returns one text per message. */
export function messageTexts(messages: JsonValue | undefined, reading: Reading): GuardedText[] {
  return readableObjectsIn(messages).flatMap(([index, message]) => {
    const path = ['messages', index]
    const parts = partsOf(message, path, reading)
    return [{ role: stringOf(message['role']), separator: ' ', parts }, ...callTexts(message, path, reading)]
  })
}

/** Returns the arguments of the tool calls of a message, one text per call. */
function callTexts(message: JsonObject, path: JsonPath, reading: Reading): GuardedText[] {
  if (reading.scopes?.has('toolInput') !== true) return []
  const calls = objectsIn(message['tool_calls']).flatMap(([index, call]) => {
    const at = [...path, 'tool_calls', index]
    return [
      ...argumentTexts(objectOf(call, 'function'), ['arguments'], { path: [...at, 'function'], reading }),
      ...argumentTexts(objectOf(call, 'custom'), ['input'], { path: [...at, 'custom'], reading }),
    ]
  })
  const legacy = { path: [...path, 'function_call'], reading }
  return [...calls, ...argumentTexts(objectOf(message, 'function_call'), ['arguments'], legacy)]
}

/** Returns the texts of a response that only guards with their scope receive. */
function optionalTexts(message: JsonObject, path: JsonPath, reading: Reading): GuardedText[] {
  const parts = reading.scopes?.has('reasoning') === true ? reasoningTexts(message, path, reading) : []
  const reasoning: GuardedText = { role: 'assistant', separator: ' ', scope: 'reasoning', parts }
  return [...(parts.length === 0 ? [] : [reasoning]), ...callTexts(message, path, reading)]
}

type OptionalReport = {
  path: JsonPath
  reading: Reading
  found(piece: StreamPiece): void
  repeats: boolean
}

/** Reports reasoning, and arguments by the number of their call. */
function reportOptional(
  message: JsonObject,
  element: number,
  { path, reading, found, repeats }: OptionalReport,
): void {
  for (const { scope = 'toolInput', parts } of optionalTexts(message, path, reading)) {
    for (const { text, path: at, isJson } of parts) {
      const place = at[path.length + 1]
      const list = at[path.length] === 'tool_calls' ? message['tool_calls'] : undefined
      const call = Array.isArray(list) && typeof place === 'number' ? list[place] : undefined
      const number = isJsonObject(call) ? numberOf(call['index'], typeof place === 'number' ? place : 0) : 0
      const to = optionalElement(element, scope, number)
      found({ element: to, part: 0, text, path: at, repeats, scope, isJson })
    }
  }
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
  const reasoning = reasoningTexts(message, path, reading)
  parts.push(...(reading.scopes === undefined ? reasoning : withScope(reasoning, 'reasoning')))
  return parts
}

function reasoningTexts(message: JsonObject, path: JsonPath, reading: Reading): TextPart[] {
  return reasoningMembers.flatMap((name) => textParts(message[name], [...path, name], reading))
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
