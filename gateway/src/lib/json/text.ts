import { buildValue, parseScalar } from './build.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  openBrace,
  openBracket,
  quote,
} from './characters.ts'
import { findDuplicate, inspectValue, type ValueFacts } from './inspect.ts'
import { type ExactJsonObject, isJsonObject, type JsonObject, type JsonValue } from './json.ts'
import {
  defaultJsonLimits,
  exceedsMembers,
  itemsPerElement,
  type JsonLimits,
  tooDeep,
  tooManyElements,
  tooManyItems,
  tooManyMembers,
} from './limits.ts'
import type { JsonMember } from './members.ts'
import { endOfString } from './string.ts'

type LargeText = {
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  /** The object with exact integers, if it has numbers beyond 2^53. */
  readonly exact: ExactJsonObject | undefined
}

/** A JSON object with its source text. */
export type JsonText = {
  kind: 'object'
  readonly text: string
  value: JsonObject
  /** Whether it has numbers beyond 2^53, which `value` has rounded; undefined if not inspected. */
  hasLargeNumbers?: boolean
  /** Members of the text, once they have been located. */
  members?: readonly JsonMember[]
  /** A large object as bytes, with the positions of its members; its text is decoded on demand. */
  large?: LargeText | undefined
}

export type JsonTextProblem =
  | { kind: 'invalid'; message: string }
  /** `path` names the member, for example `messages[0].role`. */
  | { kind: 'duplicate'; path: string }

/**
 * Parses a JSON object, and rejects duplicate keys at every depth: RFC 8259 section 4 does not define their
 * meaning, so a check and an upstream could read two different values. Text beyond `limits` is rejected
 * before parsing.
 */
export function readJsonObject(
  text: string,
  limits: JsonLimits = defaultJsonLimits,
): JsonText | JsonTextProblem {
  const read = readJsonValue(text, limits)
  if (read.kind !== 'value') return read
  const { value, hasLargeNumbers } = read
  return isJsonObject(value)
    ? { kind: 'object', text, value, hasLargeNumbers }
    : { kind: 'invalid', message: 'not a JSON object' }
}

/** As `readJsonObject`, for any value. */
export function readJsonValue(
  text: string,
  limits: JsonLimits,
): { kind: 'value'; value: unknown; hasLargeNumbers: boolean } | JsonTextProblem {
  const scan = scanStructure(text, limits)
  if (typeof scan === 'string') return { kind: 'invalid', message: scan }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'invalid', message: 'not valid JSON' }
  }
  if (scan.escapedKeys) value = buildValue(text, parseScalar)
  // JSON.parse retains one of several equal keys, after unescaping: fewer members than colons means
  // duplicates.
  const facts: ValueFacts = { members: 0, hasLargeNumbers: false }
  inspectValue([value as JsonValue], facts)
  if (facts.members !== scan.colons) return { kind: 'duplicate', path: findDuplicate(text) }
  return { kind: 'value', value, hasLargeNumbers: facts.hasLargeNumbers }
}

/**
 * The limit that the structure of a text exceeds, for messages; undefined if none. Does not validate the
 * text.
 */
export function exceededLimit(text: string, limits: JsonLimits = defaultJsonLimits): string | undefined {
  const scan = scanStructure(text, limits)
  return typeof scan === 'string' ? scan : undefined
}

/** Creates the text of a large object read from bytes. */
export function largeJsonText(value: JsonObject, large: LargeText): JsonText {
  let text: string | undefined
  return {
    kind: 'object',
    value,
    large,
    get text() {
      text ??= large.bytes.toString()
      return text
    },
  }
}

/**
 * Counts colons outside strings, and detects keys written with escapes. Returns the reason if a limit is
 * exceeded. Does not validate: the result is used only for text that JSON.parse accepts.
 */
function scanStructure(text: string, limits: JsonLimits): { colons: number; escapedKeys: boolean } | string {
  const { maxDepth, maxElements } = limits
  const mayEscape = text.includes('\\')
  let escapedKeys = false
  let colons = 0
  let commas = 0
  let brackets = 0
  let depth = 0
  let string = 0
  let stringEnd = 0
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case quote:
        string = index
        index = endOfString(text, index)
        stringEnd = index
        break
      case comma:
        commas += 1
        break
      case colon:
        colons += 1
        if (colons + brackets > maxElements) return tooManyElements(limits)
        if (mayEscape && !escapedKeys) escapedKeys = hasBackslash(text, string, stringEnd)
        break
      case openBrace:
      case openBracket:
        depth += 1
        brackets += 1
        if (depth > maxDepth) return tooDeep(limits)
        if (colons + brackets > maxElements) return tooManyElements(limits)
        break
      case closeBrace:
      case closeBracket:
        depth -= 1
        break
    }
  }
  if (commas > maxElements * itemsPerElement) return tooManyItems(limits)
  if (colons > limits.maxMembers && exceedsMembers(text, limits)) return tooManyMembers(limits)
  return { colons, escapedKeys }
}

function hasBackslash(text: string, start: number, end: number): boolean {
  for (let index = start; index < end; index += 1) if (text.charCodeAt(index) === backslash) return true
  return false
}
