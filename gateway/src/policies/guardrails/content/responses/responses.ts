import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { JsonPath } from '../../../../lib/json/splice.ts'
import { CheckFailure } from '../../guard.ts'
import {
  type ContentReader,
  type GuardedText,
  joinedText,
  numberOf,
  objectsIn,
  optionalElement,
} from '../content-reader.ts'
import { itemMembersOf } from '../part-types.ts'
import { textParts } from '../parts.ts'
import type { Reading } from '../reading.ts'
import { argumentTexts, definitionTexts } from '../scopes/tools.ts'
import { type PieceSink, reportPart, reportText, summaryPart } from './responses-events.ts'

/** OpenAI Responses API. https://platform.openai.com/docs/api-reference/responses */
export const responsesContent: ContentReader = {
  separator: '\n',
  dropsEmptied: false,
  emptyLogprobs: '[]',
  request(body, reading) {
    const { instructions, input, prompt } = body
    const system: GuardedText = {
      role: 'system',
      separator: '\n',
      parts: textParts(instructions, ['instructions'], reading),
    }
    const texts = [
      ...inputTexts(input, reading),
      ...variableTexts(prompt, reading),
      ...definitionTexts(body, reading),
    ]
    return joinedText(system) === '' ? texts : [system, ...texts]
  },
  // `data` are the items of a stored response.
  reply: ({ output, data }, reading) => [
    ...objectsIn(output).flatMap(([index, item]) => textsOfItem(item, ['output', index], reading)),
    ...objectsIn(data).flatMap(([index, item]) => textsOfItem(item, ['data', index], reading)),
  ],
  event(event, found, reading) {
    const { output_index: index, item, response, part } = event
    const element = numberOf(index, 0)
    reportText(event, element, { onPiece: found, reading })
    if (isJsonObject(part)) reportPart(part, event, { onPiece: found, reading })
    if (isJsonObject(item)) reportItem(item, element, { path: ['item'], onPiece: found, reading })
    if (!isJsonObject(response)) return
    for (const [position, output] of objectsIn(response['output'])) {
      reportItem(output, position, { path: ['response', 'output', position], onPiece: found, reading })
    }
  },
}

function inputTexts(input: JsonValue | undefined, reading: Reading): GuardedText[] {
  if (typeof input === 'string')
    return [{ role: 'user', separator: '\n', parts: [{ text: input, path: ['input'] }] }]
  if (!Array.isArray(input)) return textsOfItem(input, ['input'], reading)
  return input.flatMap((item, index) => textsOfItem(item, ['input', index], reading))
}

/** Members of items with the arguments of tool calls. */
const argumentMembers = ['arguments', 'input', 'code', 'action', 'operation', 'queries']

/** Returns the texts of an item: messages, tool results and, for guards with their scope, tool calls. */
function textsOfItem(item: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  if (item === undefined || item === null) return []
  if (typeof item === 'string') return [{ role: 'user', separator: '\n', parts: [{ text: item, path }] }]
  if (!isJsonObject(item)) throw new CheckFailure('unreadable input')
  const { type, role, content } = item
  const members = membersOf(item, reading)
  const isReasoningItem = type === 'reasoning'
  if (isReasoningItem && reading.phase === 'response' && reading.scopes?.has('reasoning') !== true) return []
  const scope = isReasoningItem ? ({ scope: 'reasoning' } as const) : {}
  const said = textParts(content, [...path, 'content'], reading)
  const speaker = reading.phase === 'response' || isReasoningItem ? 'assistant' : 'user'
  const texts: GuardedText[] = []
  if (typeof role === 'string' || said.length > 0 || (reading.phase === 'response' && type === 'message')) {
    texts.push({ role: typeof role === 'string' ? role : speaker, separator: '\n', parts: said, ...scope })
  }
  const answered = members.flatMap((name) => textParts(item[name], [...path, name], reading))
  if (answered.length > 0) {
    const answerer = isReasoningItem
      ? { role: 'assistant', ...scope }
      : ({ role: 'tool', scope: 'toolOutput' } as const)
    texts.push({ ...answerer, separator: '\n', parts: answered })
  }
  return [...texts, ...argumentTexts(item, argumentMembers, { path, reading })]
}

/** Members with text besides `content`. */
function membersOf(item: JsonObject, reading: Reading): readonly string[] {
  const { type } = item
  if (type !== undefined && type !== null && typeof type !== 'string') {
    throw new CheckFailure('a type that is not text')
  }
  const known = itemMembersOf(type ?? typeOf(item))
  if (known === undefined) reading.reportUnknown(type ?? 'none')
  const members = [...(known ?? []), 'output']
  // In a configuration update, `text` is an object.
  return typeof item['text'] === 'string' ? [...members, 'text'] : members
}

/** Returns the type of an item without one: a message, or a reference to an earlier item. */
function typeOf(item: JsonObject): string {
  if ('role' in item || 'content' in item) return 'message'
  const isReference = Object.keys(item).every((name) => name === 'id' || name === 'type')
  return isReference && typeof item['id'] === 'string' ? 'item_reference' : ''
}

/** Returns the texts of the variables of a stored prompt. */
function variableTexts(prompt: JsonValue | undefined, reading: Reading): GuardedText[] {
  const variables = isJsonObject(prompt) ? prompt['variables'] : undefined
  if (!isJsonObject(variables)) return []
  return Object.entries(variables).flatMap(([name, value]) => {
    const parts = textParts(value, ['prompt', 'variables', name], reading)
    return parts.length === 0 ? [] : [{ role: 'user', separator: '\n', parts }]
  })
}

type ItemReport = PieceSink & { path: JsonPath }

/** Part numbers of tool results, which are sent as a whole, never as additions to a part of a message. */
const firstResult = 1_000_000

function reportItem(item: JsonObject, element: number, { path, onPiece: found, reading }: ItemReport): void {
  for (const { role, parts, scope } of textsOfItem(item, path, reading)) {
    const isResult = role === 'tool' && item['type'] !== 'message'
    const isVisible = scope !== 'toolInput' && scope !== 'reasoning'
    if (!isResult && isVisible) found({ element, part: 0, text: '', path: [], repeats: false })
    for (const [
      position,
      { text, path: at, logprobs: echo, scope: own = scope, isJson },
    ] of parts.entries()) {
      const place = at[path.length + 1]
      const index = typeof place === 'number' ? place : 0
      const ofItem = at[path.length] === 'summary' ? summaryPart + index : index
      const part = isResult ? firstResult + position : ofItem
      const isOptional = own === 'toolInput' || own === 'reasoning'
      const to = isOptional ? optionalElement(element, own) : element
      found({ element: to, part, text, path: at, repeats: true, logprobs: echo, scope: own, isJson })
    }
  }
}
