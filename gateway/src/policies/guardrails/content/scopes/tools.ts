import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { JsonPath } from '../../../../lib/json/splice.ts'
import { CheckFailure } from '../../guard.ts'
import { type GuardedText, objectsIn, type TextPart } from '../content-reader.ts'
import type { Reading } from '../reading.ts'

/** Arguments of a tool call: a text, or other JSON as its text. */
export function argumentPart(value: JsonValue | undefined, path: JsonPath): TextPart | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return { text: value, path }
  return Object.keys(value).length === 0 ? undefined : { text: JSON.stringify(value), path, isJson: true }
}

/** Returns the arguments of tool calls at `members` of an object, if a guard has their scope. */
export function argumentTexts(
  owner: JsonObject,
  members: readonly string[],
  { path, reading }: { path: JsonPath; reading: Reading },
): GuardedText[] {
  if (reading.scopes?.has('toolInput') !== true) return []
  return members.flatMap((name) => {
    const part = argumentPart(owner[name], [...path, name])
    return part === undefined ? [] : [{ role: 'assistant', separator: '', scope: 'toolInput', parts: [part] }]
  })
}

/** Members with identifiers, whose change would break the definition. */
const identifiers: ReadonlySet<string> = new Set([
  ...['type', 'name', 'id', '$ref', '$schema', '$id', 'format', 'pattern', 'required', 'strict'],
])
const maxDepth = 64

/**
 * Returns one text per tool definition and format of the output: descriptions, defaults, examples and
 * permitted values.
 */
export function definitionTexts(body: JsonObject, reading: Reading, path: JsonPath = []): GuardedText[] {
  if (reading.scopes?.has('toolDefinitions') !== true) return []
  const tools = ['tools', 'functions'].flatMap((member) =>
    objectsIn(body[member]).flatMap(([index, tool]) => definition(tool, [...path, member, index])),
  )
  const formats = formatPlaces.flatMap((place) => definition(valueIn(body, place), [...path, ...place]))
  return [...tools, ...formats]
}

/** Formats of the output of all APIs, with their schemas. */
const formatPlaces: readonly JsonPath[] = [
  ['response_format'],
  ['text', 'format'],
  ['output_format'],
  ['output_config', 'format'],
  ['outputConfig'],
  ...['generationConfig', 'generation_config'].flatMap((settings) =>
    [
      'responseSchema',
      'response_schema',
      'responseJsonSchema',
      'response_json_schema',
      '_responseJsonSchema',
      'responseFormat',
    ].map((name) => [settings, name]),
  ),
]

function valueIn(body: JsonObject, path: JsonPath): JsonValue | undefined {
  let value: JsonValue | undefined = body
  for (const name of path) value = isJsonObject(value) ? value[name] : undefined
  return value
}

function definition(value: JsonValue | undefined, path: JsonPath): GuardedText[] {
  const parts: TextPart[] = []
  if (value !== undefined && value !== null) collectStrings(value, path, parts)
  return parts.length === 0 ? [] : [{ role: 'system', separator: '\n', scope: 'toolDefinitions', parts }]
}

function collectStrings(value: JsonValue, path: JsonPath, into: TextPart[]): void {
  if (path.length > maxDepth) throw new CheckFailure('tool definitions nested too deeply')
  if (typeof value === 'string') into.push({ text: value, path })
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) collectStrings(item, [...path, index], into)
  } else if (isJsonObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      const isIdentifier = identifiers.has(name) && (typeof member === 'string' || Array.isArray(member))
      if (!isIdentifier) collectStrings(member, [...path, name], into)
    }
  }
}
