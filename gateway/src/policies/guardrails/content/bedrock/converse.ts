import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { JsonPath } from '../../../../lib/json/splice.ts'
import { readJsonObject } from '../../../../lib/json/text.ts'
import { findAmbiguousConverseName } from '../../../../pipeline/llm-names.ts'
import { CheckFailure } from '../../guard.ts'
import {
  type ContentReader,
  type GuardedText,
  numberOf,
  objectsIn,
  optionalElement,
  readableObjectsIn,
  type StreamPiece,
  stringOf,
  type TextPart,
} from '../content-reader.ts'
import { fileText } from '../media-text.ts'
import { stringsIn, withScope } from '../parts.ts'
import type { Reading } from '../reading.ts'
import { argumentTexts, definitionTexts } from '../scopes/tools.ts'

/**
 * The Converse API of Amazon Bedrock.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export const converseContent: ContentReader = {
  separator: '',
  dropsEmptied: true,
  emptyLogprobs: 'null',
  findAmbiguousName: findAmbiguousConverseName,
  request: (body, reading) => [
    ...requestTexts(body, [], reading),
    ...countedTexts(body['input'], ['input'], reading),
  ],
  reply({ output, trace, additionalModelResponseFields: fields }, reading) {
    const message = isJsonObject(output) ? output['message'] : undefined
    const content = isJsonObject(message) ? message['content'] : undefined
    const path = ['output', 'message', 'content']
    const texts = objectsIn(content).flatMap(([index, block]): GuardedText[] => {
      const parts = textsOfBlock(block, [...path, index], reading)
      return [
        { role: 'assistant', separator: ' ', parts },
        ...callTexts([block], path, reading).map((text) => atIndex(text, path.length, index)),
      ]
    })
    return [
      ...texts,
      ...textOf('assistant', ' ', stringsIn(trace, ['trace'])),
      ...textOf('assistant', ' ', stringsIn(fields, ['additionalModelResponseFields'])),
    ]
  },
  event(event, found, reading) {
    const { contentBlockIndex, delta, trace, additionalModelResponseFields: fields } = event
    const element = numberOf(contentBlockIndex, 0)
    if (isJsonObject(delta)) readDelta(delta, element, { found, reading })
    // Traces of guardrails have the text of the model without masks.
    const others = [...stringsIn(trace, ['trace']), ...stringsIn(fields, ['additionalModelResponseFields'])]
    for (const [part, { text, path }] of others.entries())
      found({ element: lastElement, part, text, path, repeats: true })
  },
}

function requestTexts(body: JsonObject, at: JsonPath, reading: Reading): GuardedText[] {
  const { system, messages, toolConfig, promptVariables, additionalModelRequestFields: fields } = body
  const instructions = partsOf(system, [...at, 'system'], reading)
  const variables = stringsIn(promptVariables, [...at, 'promptVariables'])
  const settings = stringsIn(fields, [...at, 'additionalModelRequestFields'])
  return [
    ...textOf('system', '\n', instructions),
    ...readableObjectsIn(messages).flatMap(([index, { role, content }]): GuardedText[] => {
      const path = [...at, 'messages', index, 'content']
      const parts = partsOf(content, path, reading)
      return [{ role: stringOf(role), separator: ' ', parts }, ...callTexts(content, path, reading)]
    }),
    ...textOf('user', ' ', variables),
    ...textOf('system', ' ', settings),
    ...(isJsonObject(toolConfig) ? definitionTexts(toolConfig, reading, [...at, 'toolConfig']) : []),
    ...definitionTexts(body, reading, at),
  ]
}

/**
 * Texts of `CountTokens`: of a request of Converse, or of a body of `InvokeModel` in base64, as one JSON
 * text.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html
 */
function countedTexts(input: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  if (!isJsonObject(input)) return []
  const { converse, invokeModel } = input
  const body = isJsonObject(invokeModel) ? invokeModel['body'] : undefined
  return [
    ...(isJsonObject(converse) ? requestTexts(converse, [...path, 'converse'], reading) : []),
    ...(typeof body === 'string' ? textOf('user', ' ', invokedText(body, path)) : []),
  ]
}

function invokedText(body: string, path: JsonPath): TextPart[] {
  const read = readJsonObject(Buffer.from(body, 'base64').toString())
  if (read.kind !== 'object') throw new CheckFailure('a body of InvokeModel that is not a JSON object')
  // Written anew, so that no escapes hide a text.
  const text = JSON.stringify(read.value)
  return [{ text, path: [...path, 'invokeModel', 'body'], base64: { prefix: '' } }]
}

/** Behind all content blocks. */
const lastElement = Number.MAX_SAFE_INTEGER

function textOf(role: string, separator: string, parts: TextPart[]): GuardedText[] {
  return parts.length === 0 ? [] : [{ role, separator, parts }]
}

function atIndex(text: GuardedText, position: number, index: number): GuardedText {
  return { ...text, parts: text.parts.map((part) => ({ ...part, path: part.path.with(position, index) })) }
}

function partsOf(content: JsonValue | undefined, path: JsonPath, reading: Reading): TextPart[] {
  if (content === undefined || content === null) return []
  if (!Array.isArray(content)) throw new CheckFailure('content that is not a list')
  return content.flatMap((block, index) => textsOfBlock(block, [...path, index], reading))
}

/** Members of blocks without text for guards: media, calls, marks and names of tools. */
const silentMembers: ReadonlySet<string> = new Set([
  ...['image', 'video', 'audio', 'cachePoint', 'toolUse', 'toolAddition', 'toolRemoval'],
])

function textsOfBlock(block: JsonValue, path: JsonPath, reading: Reading): TextPart[] {
  if (!isJsonObject(block)) throw new CheckFailure('a block that is not an object')
  const found = Object.entries(block).flatMap(([name, value]): TextPart[] => {
    if (value === null || silentMembers.has(name)) return []
    const at = [...path, name]
    switch (name) {
      case 'text':
        if (typeof value !== 'string') throw new CheckFailure('a text that is not a string')
        return [{ text: value, path: at }]
      case 'guardContent':
      case 'searchResult':
      case 'citationsContent':
        return stringsIn(value, at)
      case 'document':
        return documentTexts(value, at)
      case 'toolResult':
        return resultTexts(value, at, reading)
      case 'reasoningContent':
        return reasoningTexts(value, at, reading)
      default:
        reading.reportUnknown(name)
        return []
    }
  })
  const [only] = found
  return only !== undefined && found.length === 1
    ? [{ ...only, isWhole: only.path.length === path.length + 1 }]
    : found
}

/** Formats of documents whose bytes are no text. */
const binaryFormats: ReadonlySet<JsonValue | undefined> = new Set(['pdf', 'doc', 'docx', 'xls', 'xlsx'])

/** Name, context and text of a document. Applications of AWS's SDKs send texts as bytes, too. */
function documentTexts(document: JsonValue, path: JsonPath): TextPart[] {
  if (!isJsonObject(document)) throw new CheckFailure('a document that is not an object')
  const { format, name, context, source } = document
  const { bytes, s3Location: _, ...texts } = isJsonObject(source) ? source : {}
  const found = [
    ...stringsIn(name, [...path, 'name']),
    ...stringsIn(context, [...path, 'context']),
    ...stringsIn(texts, [...path, 'source']),
  ]
  if (typeof bytes !== 'string') return found
  const type = binaryFormats.has(format) ? 'application/octet-stream' : 'text/plain'
  return [...found, ...fileText(bytes, type, [...path, 'source', 'bytes'])]
}

function resultTexts(result: JsonValue, path: JsonPath, reading: Reading): TextPart[] {
  const content = isJsonObject(result) ? result['content'] : undefined
  const at = [...path, 'content']
  const parts = objectsIn(content).flatMap(([index, { json, ...block }]) => [
    ...stringsIn(json, [...at, index, 'json']),
    ...textsOfBlock(block, [...at, index], reading).map(({ isWhole: _, ...part }) => part),
  ])
  return withScope(parts, 'toolOutput')
}

/** Reasoning in a response is not checked without its scope; in a request it is text of the client. */
function reasoningTexts(value: JsonValue, path: JsonPath, reading: Reading): TextPart[] {
  const isSkipped = reading.phase === 'response' && reading.scopes?.has('reasoning') !== true
  const reasoning = isJsonObject(value) ? value['reasoningText'] : undefined
  if (isSkipped || !isJsonObject(reasoning)) return []
  const parts = stringsIn(reasoning['text'], [...path, 'reasoningText', 'text'])
  return reading.scopes === undefined ? parts : withScope(parts, 'reasoning')
}

/** Returns the inputs of the tool calls of a message. */
function callTexts(content: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  return objectsIn(content).flatMap(([index, { toolUse }]) =>
    isJsonObject(toolUse)
      ? argumentTexts(toolUse, ['input'], { path: [...path, index, 'toolUse'], reading })
      : [],
  )
}

type DeltaReport = { found(piece: StreamPiece): void; reading: Reading }

const silentDeltas: ReadonlySet<string> = new Set(['citation', 'image'])

function readDelta(delta: JsonObject, element: number, { found, reading }: DeltaReport): void {
  const at = { element, part: 0, repeats: false }
  for (const [name, value] of Object.entries(delta)) {
    if (name === 'text') {
      if (typeof value !== 'string') throw new CheckFailure('a text that is not a string')
      found({ ...at, text: value, path: ['delta', 'text'] })
    } else if (name === 'toolUse') {
      const input = isJsonObject(value) ? value['input'] : undefined
      if (typeof input !== 'string' || reading.scopes?.has('toolInput') !== true) continue
      const place = optionalElement(element, 'toolInput')
      found({ ...at, element: place, text: input, path: ['delta', 'toolUse', 'input'], scope: 'toolInput' })
    } else if (name === 'reasoningContent') {
      const text = isJsonObject(value) ? value['text'] : undefined
      if (typeof text !== 'string' || reading.scopes?.has('reasoning') !== true) continue
      const place = optionalElement(element, 'reasoning')
      found({ ...at, element: place, text, path: ['delta', 'reasoningContent', 'text'], scope: 'reasoning' })
    } else if (name === 'toolResult') {
      for (const { text, path } of stringsIn(value, ['delta', name])) found({ ...at, part: 1, text, path })
    } else if (!silentDeltas.has(name)) reading.reportUnknown(name)
  }
}
