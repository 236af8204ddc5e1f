import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { findAmbiguousGeminiName } from '../../../pipeline/llm-names.ts'
import { CheckFailure } from '../guard.ts'
import {
  type ContentReader,
  type GuardedText,
  numberOf,
  objectsIn,
  optionalElement,
  type TextPart,
} from './content-reader.ts'
import { mediaTexts } from './media-text.ts'
import { stringsIn, withScope } from './parts.ts'
import type { Reading } from './reading.ts'
import { argumentTexts, definitionTexts } from './scopes/tools.ts'

/**
 * Google's `generateContent`. https://ai.google.dev/api/generate-content. Google reads names in camel case
 * and in snake case.
 */
export const geminiContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  findAmbiguousName: findAmbiguousGeminiName,
  // Token counts have fields of a request, or a whole one.
  request: (body, reading) => [
    ...requestTexts(body, [], reading),
    ...['generateContentRequest', 'generate_content_request'].flatMap((name) => {
      const whole = body[name]
      return isJsonObject(whole) ? requestTexts(whole, [name], reading) : []
    }),
  ],
  reply: ({ candidates }, reading) =>
    objectsIn(candidates).flatMap(([index, candidate]): GuardedText[] => {
      const path = ['candidates', index]
      const logprobs = candidate['logprobsResult'] === undefined ? undefined : [...path, 'logprobsResult']
      const parts = partsOf(candidate['content'], [...path, 'content'], reading)
      const text: GuardedText = {
        role: 'assistant',
        separator: '',
        parts: parts.map((part, position) => (position === 0 ? { ...part, logprobs } : part)),
      }
      return [text, ...callTexts(candidate['content'], [...path, 'content'], reading)]
    }),
  event({ candidates }, found, reading) {
    for (const [position, candidate] of objectsIn(candidates)) {
      const path = ['candidates', position]
      const at = { element: numberOf(candidate['index'], position), part: 0, repeats: false }
      const logprobs = candidate['logprobsResult'] === undefined ? undefined : [...path, 'logprobsResult']
      const parts = partsOf(candidate['content'], [...path, 'content'], reading)
      const first = parts.find(({ scope }) => scope !== 'reasoning')
      if (first === undefined) found({ ...at, text: '', path: [], logprobs })
      for (const part of parts) {
        const { text, path: place, scope } = part
        const element = scope === 'reasoning' ? optionalElement(at.element, scope) : at.element
        found({ ...at, element, text, path: place, logprobs: part === first ? logprobs : undefined, scope })
      }
      // Each call is sent as a whole, and is a text of its own.
      for (const { parts: calls } of callTexts(candidate['content'], [...path, 'content'], reading)) {
        const element = optionalElement(at.element, 'toolInput')
        for (const { text, path: place, isJson } of calls)
          found({ element, part: 0, text, path: place, repeats: true, scope: 'toolInput', isJson })
      }
    }
  },
}

function requestTexts(body: JsonObject, at: JsonPath, reading: Reading): GuardedText[] {
  const { contents, systemInstruction, system_instruction: snakeInstruction } = body
  const instructions = [
    ...contentTexts(systemInstruction, [...at, 'systemInstruction'], reading),
    ...contentTexts(snakeInstruction, [...at, 'system_instruction'], reading),
  ]
  return [
    ...instructions.map((text) => ({ ...text, role: 'system', separator: '\n' })),
    ...contentTexts(contents, [...at, 'contents'], reading),
    ...definitionTexts(body, reading, at),
  ]
}

/** Texts of contents: a list, or a single one, which Google also accepts. */
function contentTexts(value: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value))
    return value.flatMap((content, index) => contentTexts(content, [...path, index], reading))
  if (!isJsonObject(value)) throw new CheckFailure('a content that is not an object')
  const parts = partsOf(value, path, reading)
  return [{ role: roleOf(value), separator: ' ', parts }, ...callTexts(value, path, reading)]
}

/** Members of parts with calls of functions. */
const callMembers = ['functionCall', 'function_call', 'toolCall', 'tool_call']

/** Returns the arguments of the calls of a content, one text per call. */
function callTexts(content: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  if (reading.scopes?.has('toolInput') !== true || !isJsonObject(content)) return []
  const { parts } = content
  const list = Array.isArray(parts)
    ? objectsIn(parts)
    : isJsonObject(parts)
      ? [[undefined, parts] as const]
      : []
  return list.flatMap(([index, part]) =>
    callMembers.flatMap((name) => {
      const call = part[name]
      const place = [...path, 'parts', ...(index === undefined ? [] : [index]), name]
      return isJsonObject(call) ? argumentTexts(call, ['args'], { path: place, reading }) : []
    }),
  )
}

/** Results of functions have the role of the user. */
function roleOf({ role, parts }: JsonObject): string {
  if (role === 'model') return 'assistant'
  const results = objectsIn(parts).filter(
    ([, part]) => part['functionResponse'] !== undefined || part['function_response'] !== undefined,
  )
  const hasOnlyResults = Array.isArray(parts) && parts.length > 0 && results.length === parts.length
  return role === 'function' || hasOnlyResults ? 'tool' : 'user'
}

function partsOf(content: JsonValue | undefined, path: JsonPath, reading: Reading): TextPart[] {
  const parts = isJsonObject(content) ? content['parts'] : undefined
  if (parts === undefined || parts === null) return []
  const at = [...path, 'parts']
  if (!Array.isArray(parts)) return textsOf(parts, at, reading)
  return parts.flatMap((part, index) => textsOf(part, [...at, index], reading))
}

/** Members of parts without text for guards: media, calls, and settings of both. */
const silentMembers: ReadonlySet<string> = new Set([
  ...['thought', 'thoughtSignature', 'thought_signature', 'videoMetadata', 'video_metadata'],
  ...['mediaResolution', 'media_resolution', 'partMetadata', 'part_metadata', 'inlineData', 'inline_data'],
  ...['fileData', 'file_data', 'functionCall', 'function_call', 'toolCall', 'tool_call'],
])

/** Members with texts in the members of their object. */
const textObjects: ReadonlyMap<string, readonly string[]> = new Map([
  ['executableCode', ['code']],
  ['executable_code', ['code']],
  ['codeExecutionResult', ['output']],
  ['code_execution_result', ['output']],
])

function textsOf(part: JsonValue, path: JsonPath, reading: Reading): TextPart[] {
  if (!isJsonObject(part)) throw new CheckFailure('a part that is not an object')
  const isThought = part['thought'] === true
  const isSkipped = isThought && reading.phase === 'response' && reading.scopes?.has('reasoning') !== true
  const found = mediaTexts(part, path)
  for (const [name, value] of Object.entries(part)) {
    if (value === null || silentMembers.has(name)) continue
    if (name === 'text') {
      if (typeof value !== 'string') throw new CheckFailure('a text that is not a string')
      if (!isSkipped) found.push({ text: value, path: [...path, name] })
    } else if (name === 'functionResponse' || name === 'function_response') {
      const response = isJsonObject(value) ? value['response'] : undefined
      const files = objectsIn(isJsonObject(value) ? value['parts'] : undefined).flatMap(([index, file]) =>
        mediaTexts(file, [...path, name, 'parts', index]),
      )
      const parts = [...stringsIn(response, [...path, name, 'response']), ...files]
      found.push(...withScope(parts, 'toolOutput'))
    } else if (textObjects.has(name)) {
      found.push(...membersOf(value, textObjects.get(name) ?? [], [...path, name]))
    } else reading.reportUnknown(name)
  }
  return isThought && reading.scopes !== undefined ? withScope(found, 'reasoning') : found
}

function membersOf(value: JsonValue, names: readonly string[], path: JsonPath): TextPart[] {
  if (!isJsonObject(value)) throw new CheckFailure('a part that is not an object')
  return names.flatMap((name) => stringsIn(value[name], [...path, name]))
}
