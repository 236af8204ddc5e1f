import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { answerLimits } from '../../../lib/json/limits.ts'
import { isLarge, readJsonIncrementally } from '../../../lib/json/read.ts'
import { exceededLimit, type JsonText } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'

declare global {
  // Part of ECMAScript 2026 and of all supported Node versions; not yet in the compiler's library.
  interface JSON {
    rawJSON(text: string): JsonObject
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
    ): unknown
  }
}

/** Maximum nesting, because the serialization is recursive. */
const maxDepth = 500

/**
 * `JSON.parse` with exact numbers: a number beyond the precision of a double (an id above 2^53) becomes an
 * opaque value that `JSON.stringify` serializes digit by digit. Undefined if the text is not JSON or nested
 * too deep.
 */
export function parseExactJson(text: string): JsonValue | undefined {
  if (hasManyBrackets(text) && nestingDepth(text) > maxDepth) return undefined
  try {
    // The reviver costs several times the parsing, so it is used only if the text may contain long numbers.
    return (longNumber.test(text) ? JSON.parse(text, reviveLongNumbers) : JSON.parse(text)) as JsonValue
  } catch {
    return undefined
  }
}

/** `parseExactJson` for objects; undefined for other values. */
export function parseExactObject(text: string): JsonObject | undefined {
  const value = parseExactJson(text)
  return isJsonObject(value) ? value : undefined
}

/** The object of a text that was read, with exact numbers. It may be shared with the text. */
export function withExactNumbers({ text, value }: JsonText): JsonObject {
  return longNumber.test(text) ? (parseExactObject(text) ?? value) : value
}

/**
 * Maximum characters of JSON in a string, such as the input of a tool call, which the limits of the body do
 * not cover.
 */
const maxNestedLength = 4 * 1024 * 1024

/** `parseExactObject` for JSON in a string of a client, with separate limits. */
export function parseNestedObject(text: string): JsonObject | undefined {
  if (text.length > maxNestedLength || exceededLimit(text) !== undefined) return undefined
  return parseExactObject(text)
}

/** `parseExactObject` of bytes, a large object in workQueue with traffic. */
export function readExactObject(
  bytes: Buffer,
  workQueue: WorkQueue,
): JsonObject | undefined | Promise<JsonObject | undefined> {
  if (!isLarge(bytes)) return parseExactObject(bytes.toString())
  const options = { limits: answerLimits, unchecked: parseExactJson }
  return readJsonIncrementally(bytes, workQueue, options).then((json) =>
    json.kind === 'object' ? json.value : undefined,
  )
}

/** JSON text of a value from an upstream; undefined if it is nested too deep for the serialization. */
export function writeJson(value: JsonValue): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

const longNumber = /[0-9.]{16}/

function reviveLongNumbers(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined || source.length < 16) return value
  return String(value) === source ? value : JSON.rawJSON(source)
}

/**
 * Whether the text has more opening brackets than the limit, in strings or outside. Most texts have few of
 * them, and the search for each is faster than a scan of all characters (2 us per kB).
 */
function hasManyBrackets(text: string): boolean {
  if (text.length <= maxDepth) return false
  let rest = maxDepth
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      rest -= 1
      if (rest < 0) return true
    }
  }
  return false
}

function nestingDepth(text: string): number {
  const scan = createNestingScan()
  scan.push(text)
  return scan.deepest
}

/** Tracks the nesting of JSON text that arrives in fragments, without validation. */
export type NestingScan = {
  push(fragment: string): void
  /** The outermost object or array is closed. */
  readonly complete: boolean
  readonly deepest: number
}

export function createNestingScan(): NestingScan {
  let depth = 0
  let deepest = 0
  let complete = false
  let inString = false
  let escaped = false
  return {
    get complete() {
      return complete
    },
    get deepest() {
      return deepest
    },
    push(fragment) {
      for (let at = 0; at < fragment.length; at += 1) {
        const code = fragment.charCodeAt(at)
        if (escaped) escaped = false
        else if (inString) {
          if (code === backslash) escaped = true
          else if (code === quote) inString = false
        } else if (code === quote) inString = true
        else if (code === openBrace || code === openBracket) {
          depth += 1
          if (depth > deepest) deepest = depth
        } else if (code === closeBrace || code === closeBracket) {
          depth -= 1
          if (depth === 0) complete = true
        }
      }
    },
  }
}

const quote = 34
const backslash = 92
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125
