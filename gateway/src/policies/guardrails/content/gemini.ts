import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { findAmbiguousGeminiName } from '../../../pipeline/llm-names.ts'
import { CheckFailure } from '../guard.ts'
import { type ContentReader, type GuardedText, numberOf, objectsIn, type TextPart } from './content-reader.ts'
import type { Reading } from './reading.ts'

/** Google's `generateContent`. https://ai.google.dev/api/generate-content. Google reads names in camel case and in snake case. */
export const geminiContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  findAmbiguousName: findAmbiguousGeminiName,
  request({ contents, systemInstruction, system_instruction: snakeInstruction }, reading) {
    const instructions = [
      ...contentTexts(systemInstruction, ['systemInstruction'], reading),
      ...contentTexts(snakeInstruction, ['system_instruction'], reading),
    ]
    return [
      ...instructions.map((text) => ({ ...text, role: 'system', separator: '\n' })),
      ...contentTexts(contents, ['contents'], reading),
    ]
  },
  reply: ({ candidates }, reading) =>
    objectsIn(candidates).map(([index, candidate]): GuardedText => {
      const path = ['candidates', index]
      const logprobs = candidate['logprobsResult'] === undefined ? undefined : [...path, 'logprobsResult']
      const parts = partsOf(candidate['content'], [...path, 'content'], reading)
      return {
        role: 'assistant',
        separator: '',
        parts: parts.map((part, position) => (position === 0 ? { ...part, logprobs } : part)),
      }
    }),
  event({ candidates }, found, reading) {
    for (const [position, candidate] of objectsIn(candidates)) {
      const path = ['candidates', position]
      const at = { element: numberOf(candidate['index'], position), part: 0, repeats: false }
      const logprobs = candidate['logprobsResult'] === undefined ? undefined : [...path, 'logprobsResult']
      const parts = partsOf(candidate['content'], [...path, 'content'], reading)
      if (parts.length === 0) found({ ...at, text: '', path: [], logprobs })
      for (const [index, part] of parts.entries())
        found({ ...at, text: part.text, path: part.path, logprobs: index === 0 ? logprobs : undefined })
    }
  },
}

/** Texts of contents: a list, or a single one, which Google also accepts. */
function contentTexts(value: JsonValue | undefined, path: JsonPath, reading: Reading): GuardedText[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value))
    return value.flatMap((content, index) => contentTexts(content, [...path, index], reading))
  if (!isJsonObject(value)) throw new CheckFailure('a content that is not an object')
  return [{ role: roleOf(value), separator: ' ', parts: partsOf(value, path, reading) }]
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
  const isSkipped = part['thought'] === true && reading.phase === 'response'
  const found: TextPart[] = []
  for (const [name, value] of Object.entries(part)) {
    if (value === null || silentMembers.has(name)) continue
    if (name === 'text') {
      if (typeof value !== 'string') throw new CheckFailure('a text that is not a string')
      if (!isSkipped) found.push({ text: value, path: [...path, name] })
    } else if (name === 'functionResponse' || name === 'function_response') {
      const response = isJsonObject(value) ? value['response'] : undefined
      found.push(...stringsIn(response, [...path, name, 'response']))
    } else if (textObjects.has(name)) {
      found.push(...membersOf(value, textObjects.get(name) ?? [], [...path, name]))
    } else reading.reportUnknown(name)
  }
  return found
}

function membersOf(value: JsonValue, names: readonly string[], path: JsonPath): TextPart[] {
  if (!isJsonObject(value)) throw new CheckFailure('a part that is not an object')
  return names.flatMap((name) => stringsIn(value[name], [...path, name]))
}

/** All texts of the result of a function, whose members have any names. Its depth is that of the checked body. */
function stringsIn(value: JsonValue | undefined, path: JsonPath): TextPart[] {
  if (typeof value === 'string') return [{ text: value, path }]
  if (Array.isArray(value)) return value.flatMap((item, index) => stringsIn(item, [...path, index]))
  return isJsonObject(value) ? entriesIn(value, path) : []
}

function entriesIn(value: JsonObject, path: JsonPath): TextPart[] {
  return Object.entries(value).flatMap(([name, member]) => stringsIn(member, [...path, name]))
}
