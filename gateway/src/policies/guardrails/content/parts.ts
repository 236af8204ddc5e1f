import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { CheckFailure } from '../guard.ts'
import { logprobsPath, type TextPart } from './content-reader.ts'
import { mediaTexts } from './media-text.ts'
import { isReasoning, textMembersOf } from './part-types.ts'
import type { Reading } from './reading.ts'
import type { ContentScope } from './scopes/content-scope.ts'

/**
 * Returns the text parts of a `content`: a string or a list of parts. Throws `CheckFailure` on other JSON,
 * because an upstream might accept it.
 */
export function textParts(content: JsonValue | undefined, path: JsonPath, reading: Reading): TextPart[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return [{ text: content, path }]
  if (!Array.isArray(content)) return textsOfPart(content, path, reading)
  return content.flatMap((part, index) => textsOfPart(part, [...path, index], reading))
}

/** Members that some servers read regardless of the type. */
const usualMembers = ['text', 'refusal', 'thinking', 'content', 'title', 'stdout', 'stderr'] as const

/**
 * Returns the texts of one part: the members of its type, and other members that usually have text, because
 * servers differ in the members they read. Reports an unknown type, and a part without type and text.
 */
export function textsOfPart(part: JsonValue, path: JsonPath, reading: Reading): TextPart[] {
  if (typeof part === 'string') return [{ text: part, path }]
  if (!isJsonObject(part)) throw new CheckFailure('content that is not text')
  const { type } = part
  const members = membersOf(type, reading)
  const scope = typeof type === 'string' ? scopeOfPart(type) : undefined
  const isSkipped =
    scope === 'reasoning' && reading.phase === 'response' && reading.scopes?.has('reasoning') !== true
  const found: TextPart[] = []
  for (const name of members ?? []) {
    if (!isSkipped) found.push(...textsOfMember(part, name, { path, reading }))
  }
  for (const name of usualMembers) {
    if (!members?.includes(name)) found.push(...textsOfMember(part, name, { path, reading }))
  }
  if (type === 'document') found.push(...textsOfSource(part, path, reading))
  found.push(...mediaTexts(part, path))
  if (found.length === 0 && members === undefined && typeof type !== 'string') reading.reportUnknown('none')
  const scoped = reading.scopes === undefined || scope === undefined ? found : withScope(found, scope)
  const [only] = scoped
  return only !== undefined && scoped.length === 1
    ? [{ ...only, isWhole: only.path.at(-1) === 'text' }]
    : scoped
}

/** Scope of a part that differs from that of its message. */
function scopeOfPart(type: string): ContentScope | undefined {
  if (isReasoning(type)) return 'reasoning'
  return type.endsWith('tool_result') ? 'toolOutput' : undefined
}

/** Adds a scope to parts without one. */
export function withScope(parts: readonly TextPart[], scope: ContentScope): TextPart[] {
  return parts.map((part) => (part.scope === undefined ? { ...part, scope } : part))
}

function membersOf(type: JsonValue | undefined, reading: Reading): readonly string[] | undefined {
  if (type === undefined || type === null) return undefined
  if (typeof type !== 'string') throw new CheckFailure('a type that is not text')
  const members = textMembersOf(type)
  if (members === undefined) reading.reportUnknown(type)
  return members
}

function textsOfMember(
  part: JsonObject,
  name: string,
  { path, reading }: { path: JsonPath; reading: Reading },
): TextPart[] {
  const value = part[name]
  if (value === undefined || value === null) return []
  if (name !== 'text') return textParts(value, [...path, name], reading)
  if (typeof value !== 'string') throw new CheckFailure('a text that is not a string')
  return [{ text: value, path: [...path, name], logprobs: logprobsPath(part, path) }]
}

const opaqueSources: ReadonlySet<unknown> = new Set(['base64', 'url', 'file'])

/** Returns the texts of a document source. */
function textsOfSource({ source }: JsonObject, path: JsonPath, reading: Reading): TextPart[] {
  if (!isJsonObject(source)) return textParts(source, [...path, 'source'], reading)
  const at = [...path, 'source']
  const { type, data, content, text } = source
  const isText = type === 'text'
  if (!isText && type !== 'content' && !opaqueSources.has(type)) {
    reading.reportUnknown(typeof type === 'string' ? type : 'none')
  }
  return [
    ...(isText ? textParts(data, [...at, 'data'], reading) : []),
    ...textParts(content, [...at, 'content'], reading),
    ...textParts(text, [...at, 'text'], reading),
  ]
}

/** All texts of free JSON, whose members have any names. Its depth is that of the checked body. */
export function stringsIn(value: JsonValue | undefined, path: JsonPath): TextPart[] {
  if (typeof value === 'string') return [{ text: value, path }]
  if (Array.isArray(value)) return value.flatMap((item, index) => stringsIn(item, [...path, index]))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) => stringsIn(member, [...path, name]))
}
