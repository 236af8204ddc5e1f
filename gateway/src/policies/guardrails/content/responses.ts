import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json.ts'
import type { JsonPath } from '../../../lib/json-splice.ts'
import { CheckFailure } from '../guard.ts'
import {
  type ContentReader,
  echoAt,
  type GuardedText,
  numberOf,
  objectsIn,
  type StreamPiece,
  shownText,
  stringOf,
  textParts,
} from './content.ts'

/** OpenAI's responses. https://platform.openai.com/docs/api-reference/responses */
export const responsesContent: ContentReader = {
  separator: '\n',
  dropsEmptied: false,
  noEcho: '[]',
  request({ instructions, input, prompt }) {
    const system: GuardedText = {
      role: 'system',
      separator: '\n',
      parts: textParts(instructions, ['instructions']),
    }
    const texts = [...inputTexts(input), ...variableTexts(prompt)]
    return shownText(system) === '' ? texts : [system, ...texts]
  },
  reply: ({ output }) =>
    objectsIn(output).flatMap(([index, item]) => (isMessage(item) ? [ofItem(item, ['output', index])] : [])),
  event(event, found) {
    const { output_index: index, content_index: part, item, response } = event
    const at = { element: numberOf(index, 0), part: numberOf(part, 0) }
    const echo = echoAt(event, [])
    switch (event['type']) {
      case 'response.output_text.delta':
        found({ ...at, text: stringOf(event['delta']), path: ['delta'], repeats: false, echo })
        return
      case 'response.output_text.done':
        found({ ...at, text: stringOf(event['text']), path: ['text'], repeats: true, echo })
        return
      case 'response.refusal.delta':
        found({ ...at, text: stringOf(event['delta']), path: ['delta'], repeats: false })
        return
      case 'response.refusal.done':
        found({ ...at, text: stringOf(event['refusal']), path: ['refusal'], repeats: true })
        return
    }
    if (isJsonObject(event['part'])) {
      const { text, refusal } = event['part']
      if (typeof refusal === 'string')
        found({ ...at, text: refusal, path: ['part', 'refusal'], repeats: true })
      if (typeof text === 'string' && isText(event['part'])) {
        const echoInPart = echoAt(event['part'], ['part'])
        found({ ...at, text, path: ['part', 'text'], repeats: true, echo: echoInPart })
      }
    }
    if (isJsonObject(item)) reportItem(item, at.element, { path: ['item'], found })
    if (isJsonObject(response)) {
      for (const [position, output] of objectsIn(response['output'])) {
        reportItem(output, position, { path: ['response', 'output', position], found })
      }
    }
  },
}

function inputTexts(input: JsonValue | undefined): GuardedText[] {
  if (typeof input === 'string') {
    return [{ role: 'user', separator: '\n', parts: textParts(input, ['input']) }]
  }
  if (!Array.isArray(input)) return textsOfItem(input, ['input'])
  return input.flatMap((item, index) => textsOfItem(item, ['input', index]))
}

/** What an item of the input says, or what a tool answered. Reasoning and calls of tools are no texts. */
function textsOfItem(item: JsonValue | undefined, path: JsonPath): GuardedText[] {
  if (item === undefined || item === null) return []
  if (typeof item === 'string') return [{ role: 'user', separator: '\n', parts: [{ text: item, path }] }]
  if (!isJsonObject(item)) throw new CheckFailure('input that cannot be read')
  const { type, role, content, output } = item
  if (type === 'reasoning') return []
  const said = textParts(content, [...path, 'content'])
  const answered = textParts(output, [...path, 'output'])
  const texts: GuardedText[] = []
  if (typeof role === 'string' || said.length > 0) {
    texts.push({ role: typeof role === 'string' ? role : 'user', separator: '\n', parts: said })
  }
  if (answered.length > 0) texts.push({ role: 'tool', separator: '\n', parts: answered })
  return texts
}

/** What is put into a prompt that the provider keeps. */
function variableTexts(prompt: JsonValue | undefined): GuardedText[] {
  const variables = isJsonObject(prompt) ? prompt['variables'] : undefined
  if (!isJsonObject(variables)) return []
  return Object.entries(variables).flatMap(([name, value]) => {
    const parts = textParts(value, ['prompt', 'variables', name])
    return parts.length === 0 ? [] : [{ role: 'user', separator: '\n', parts }]
  })
}

function isMessage({ type }: JsonObject): boolean {
  return type === 'message'
}

/** Parts of reasoning have text too, which is no answer. */
function isText({ type }: JsonObject): boolean {
  return type === 'output_text' || type === undefined
}

function ofItem({ role, content }: JsonObject, path: JsonPath): GuardedText {
  const parts = textParts(content, [...path, 'content'])
  return { role: typeof role === 'string' ? role : 'assistant', separator: '\n', parts }
}

type Where = { path: JsonPath; found(piece: StreamPiece): void }

function reportItem(item: JsonObject, element: number, { path, found }: Where): void {
  if (!isMessage(item)) return
  found({ element, part: 0, text: '', path: [], repeats: false })
  for (const { text, path: at, echo } of ofItem(item, path).parts) {
    const part = at.at(-2)
    found({ element, part: typeof part === 'number' ? part : 0, text, path: at, repeats: true, echo })
  }
}
