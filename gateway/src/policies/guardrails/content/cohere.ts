import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { findAmbiguousCohereName } from '../../../pipeline/llm-names.ts'
import { CheckFailure } from '../guard.ts'
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
} from './content-reader.ts'
import { stringsIn, textParts, withScope } from './parts.ts'
import type { Reading } from './reading.ts'
import { argumentTexts, definitionTexts } from './scopes/tools.ts'

/**
 * The second version of Cohere's chat. https://docs.cohere.com/v2/reference/chat: documents have texts of any
 * names, and citations repeat texts of the response and of documents.
 */
export const cohereContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  findAmbiguousName: findAmbiguousCohereName,
  request: (body, reading) => [
    ...readableObjectsIn(body['messages']).flatMap(([index, message]) => {
      const path = ['messages', index]
      const role = stringOf(message['role'])
      return [
        { role, separator: ' ', parts: partsOf(message, path, reading) },
        ...callTexts(message, path, reading),
      ]
    }),
    ...documentTexts(body['documents']),
    ...definitionTexts(body, reading),
  ],
  reply({ message, logprobs }, reading) {
    if (!isJsonObject(message)) return []
    const echo = Array.isArray(logprobs) && logprobs.length > 0 ? ['logprobs'] : undefined
    const parts = partsOf(message, ['message'], reading)
    return [
      {
        role: 'assistant',
        separator: ' ',
        parts: parts.map((part, index) => (index === 0 ? { ...part, logprobs: echo } : part)),
      },
      ...reasoningTexts(message, ['message'], reading),
      ...callTexts(message, ['message'], reading),
    ]
  },
  event({ index, delta, logprobs }, found, reading) {
    if (!isJsonObject(delta)) return
    const echo = isJsonObject(logprobs) ? ['logprobs'] : undefined
    const error = delta['error']
    if (typeof error === 'string')
      found({ element: lastElement, part: 0, text: error, path: ['delta', 'error'], repeats: true })
    const { message } = delta
    if (isJsonObject(message))
      readDelta(message, numberOf(index, 0), {
        reading,
        found: (piece) => found({ ...piece, logprobs: echo }),
      })
  },
}

/** Behind all content. */
const lastElement = Number.MAX_SAFE_INTEGER

/** Texts of a message: content, the plan of a call, and citations. */
function partsOf(message: JsonObject, path: JsonPath, reading: Reading): TextPart[] {
  const { content, tool_plan: plan, role } = message
  const isResponse = reading.phase === 'response'
  const given = isResponse ? visibleContent(content) : content
  const parts = textParts(given, [...path, 'content'], reading)
  const documents = contentDocuments(content, [...path, 'content'])
  return [
    ...textParts(plan, [...path, 'tool_plan'], reading),
    ...parts,
    ...(role === 'tool' ? withScope(documents, 'toolOutput') : documents),
    ...citationTexts(message['citations'], [...path, 'citations']),
  ]
}

/** Content without thinking, which has a text of its own. The places of the other parts are the same. */
function visibleContent(content: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(content)) return content
  return content.map((part) =>
    isJsonObject(part) && part['type'] === 'thinking' ? { type: 'thinking' } : part,
  )
}

function reasoningTexts(message: JsonObject, path: JsonPath, reading: Reading): GuardedText[] {
  if (reading.scopes?.has('reasoning') !== true) return []
  const parts = objectsIn(message['content']).flatMap(([index, { thinking }]): TextPart[] =>
    typeof thinking === 'string' && thinking !== ''
      ? [{ text: thinking, path: [...path, 'content', index, 'thinking'] }]
      : [],
  )
  return parts.length === 0 ? [] : [{ role: 'assistant', separator: ' ', scope: 'reasoning', parts }]
}

/** Documents in content, which are results of tools. */
function contentDocuments(content: JsonValue | undefined, path: JsonPath): TextPart[] {
  if (isJsonObject(content)) return stringsIn(content['document'], [...path, 'document'])
  return objectsIn(content).flatMap(([index, { document }]) =>
    stringsIn(document, [...path, index, 'document']),
  )
}

/** Returns one text per document. */
function documentTexts(documents: JsonValue | undefined): GuardedText[] {
  if (documents === undefined || documents === null) return []
  if (!Array.isArray(documents)) throw new CheckFailure('documents that are not a list')
  return documents.flatMap((document, index): GuardedText[] => {
    const parts = stringsIn(document, ['documents', index])
    return parts.length === 0 ? [] : [{ role: 'user', separator: ' ', parts }]
  })
}

/** Cited texts and their sources, without identifiers. */
function citationTexts(citations: JsonValue | undefined, path: JsonPath): TextPart[] {
  if (isJsonObject(citations)) return textsOfCitation(citations, path)
  return objectsIn(citations).flatMap(([index, citation]) => textsOfCitation(citation, [...path, index]))
}

function textsOfCitation({ text, sources }: JsonObject, path: JsonPath): TextPart[] {
  return [
    ...stringsIn(text, [...path, 'text']),
    ...objectsIn(sources).flatMap(([index, { document, tool_output: output }]) => [
      ...stringsIn(document, [...path, 'sources', index, 'document']),
      ...stringsIn(output, [...path, 'sources', index, 'tool_output']),
    ]),
  ]
}

/** Returns the arguments of the tool calls of a message, one text per call. */
function callTexts(message: JsonObject, path: JsonPath, reading: Reading): GuardedText[] {
  return objectsIn(message['tool_calls']).flatMap(([index, { function: made }]) =>
    isJsonObject(made)
      ? argumentTexts(made, ['arguments'], { path: [...path, 'tool_calls', index, 'function'], reading })
      : [],
  )
}

type DeltaReport = { found(piece: StreamPiece): void; reading: Reading }

/** Elements: the plan, then the contents by index. Calls have numbers behind the plan. */
function readDelta(
  { content, tool_plan: plan, tool_calls: call, citations }: JsonObject,
  index: number,
  { found, reading }: DeltaReport,
): void {
  const path = ['delta', 'message']
  if (typeof plan === 'string')
    found({ element: 0, part: 0, text: plan, path: [...path, 'tool_plan'], repeats: false })
  if (isJsonObject(content)) {
    const element = index + 1
    const { text, thinking } = content
    if (text !== undefined && text !== null && typeof text !== 'string')
      throw new CheckFailure('a text that is not a string')
    if (typeof text === 'string')
      found({ element, part: 0, text, path: [...path, 'content', 'text'], repeats: false })
    if (typeof thinking === 'string' && reading.scopes?.has('reasoning') === true) {
      const place = optionalElement(element, 'reasoning')
      const at = [...path, 'content', 'thinking']
      found({ element: place, part: 0, text: thinking, path: at, repeats: false, scope: 'reasoning' })
    }
  }
  const made = isJsonObject(call) ? call['function'] : undefined
  if (isJsonObject(made)) {
    for (const { parts } of argumentTexts(made, ['arguments'], {
      path: [...path, 'tool_calls', 'function'],
      reading,
    })) {
      for (const { text, path: at } of parts) {
        const place = optionalElement(0, 'toolInput', index)
        found({ element: place, part: 0, text, path: at, repeats: false, scope: 'toolInput' })
      }
    }
  }
  for (const [part, { text, path: at }] of citationTexts(citations, [...path, 'citations']).entries())
    found({ element: lastElement, part, text, path: at, repeats: true })
}
