import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { CheckFailure } from '../guard.ts'
import {
  type ContentReader,
  type GuardedText,
  objectsIn,
  readableObjectsIn,
  type TextPart,
} from './content-reader.ts'
import { textParts } from './parts.ts'
import { userText } from './prompt.ts'
import type { Reading } from './reading.ts'

/** Parts of readers of calls without texts in responses. */
const inputOnly: Omit<ContentReader, 'request'> = {
  separator: ' ',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  reply: () => [],
  event() {},
}

/** Moderations. https://platform.openai.com/docs/api-reference/moderations */
export const moderationsContent: ContentReader = {
  ...inputOnly,
  request: ({ input }, reading) => listOfTexts(input, ['input'], reading),
}

/** Image generation. https://platform.openai.com/docs/api-reference/images */
export const imagesContent: ContentReader = {
  ...inputOnly,
  request: (body) => membersOf(body, ['prompt', 'negative_prompt']),
  reply: ({ data }) =>
    objectsIn(data).flatMap(([index, { revised_prompt: text }]): GuardedText[] =>
      typeof text === 'string'
        ? [{ role: 'assistant', separator: '', parts: [{ text, path: ['data', index, 'revised_prompt'] }] }]
        : [],
    ),
}

/** Speech. https://platform.openai.com/docs/api-reference/audio/createSpeech */
export const speechContent: ContentReader = {
  ...inputOnly,
  request: (body) => membersOf(body, ['input', 'instructions']),
}

/** Rerank. https://docs.cohere.com/reference/rerank: documents are texts or objects with text members. */
export const rerankContent: ContentReader = {
  ...inputOnly,
  request: ({ query, documents }) => [
    ...documentsIn(query, ['query']),
    ...documentsIn(documents, ['documents']),
  ],
}

/**
 * Embeddings of Cohere. https://docs.cohere.com/reference/embed: texts, or inputs with texts and images. Images
 * are data URLs.
 */
export const embedContent: ContentReader = {
  ...inputOnly,
  request: (body, reading) => [
    ...listOfTexts(body['texts'], ['texts'], reading),
    ...readableObjectsIn(body['inputs']).flatMap(([index, { content }]) =>
      texts(textParts(content, ['inputs', index, 'content'], reading)),
    ),
  ],
}

/**
 * One text per member. Throws `CheckFailure` on values other than strings, because a server may read them.
 */
function membersOf(body: JsonObject, names: readonly string[]): GuardedText[] {
  return names.flatMap((name) => {
    const text = body[name]
    if (text === undefined || text === null) return []
    if (typeof text !== 'string') throw new CheckFailure('a text that is not a string')
    return [userText(text, [name])]
  })
}

/** One text per item of a list of texts or of content parts. */
function listOfTexts(value: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  const items = Array.isArray(value) ? value : undefined
  if (items === undefined) return texts(textParts(value, path, reading))
  return items.flatMap((item, index) => texts(textParts(item, [...path, index], reading)))
}

function texts(parts: readonly TextPart[]): GuardedText[] {
  return parts.length === 0 ? [] : [{ role: 'user', separator: ' ', parts }]
}

/** One text per document, whose members are its parts. */
function documentsIn(value: JsonValue | undefined, path: JsonPath): GuardedText[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value.flatMap((item, index) => documentsIn(item, [...path, index]))
  if (typeof value === 'string') return texts([{ text: value, path }])
  if (!isJsonObject(value)) throw new CheckFailure('a document that is not text')
  return texts(
    Object.entries(value).flatMap(([name, member]): TextPart[] => {
      if (typeof member === 'string') return [{ text: member, path: [...path, name] }]
      if (typeof member === 'object' && member !== null) throw new CheckFailure('an unreadable document')
      return []
    }),
  )
}
