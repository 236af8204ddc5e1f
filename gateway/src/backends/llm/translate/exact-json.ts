import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { answerLimits } from '../../../lib/json/limits.ts'
import { isLarge, readJsonIncrementally } from '../../../lib/json/read.ts'
import { limitExceeded } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'

declare global {
  // Both are part of ECMAScript 2026 and of every Node this runs on; the compiler's library does not list them yet.
  interface JSON {
    rawJSON(text: string): JsonObject
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
    ): unknown
  }
}

/** Deeper JSON than this is refused: writing it out again is recursive. */
const maxDepth = 500

/**
 * Like `JSON.parse`, except that a number a double cannot hold (an id above 2^53) stays what it was: it becomes an
 * opaque value that `JSON.stringify` writes out digit by digit. Undefined when the text is no JSON or nested too deep.
 */
export function parseExactJson(text: string): JsonValue | undefined {
  // Text this short cannot nest that deep, and most events of a stream are.
  if (text.length > maxDepth && nestingDepth(text) > maxDepth) return undefined
  try {
    // The reviver costs several times the parsing, so it runs only where a long number can be.
    return (longNumber.test(text) ? JSON.parse(text, reviveLongNumbers) : JSON.parse(text)) as JsonValue
  } catch {
    return undefined
  }
}

/** `parseExactJson` for what must be an object. */
export function parseExactObject(text: string): JsonObject | undefined {
  const value = parseExactJson(text)
  return isJsonObject(value) ? value : undefined
}

/** Characters of JSON in a string, as of the input of a tool call. Its structure is not that of the body it is in. */
const maxNestedLength = 4 * 1024 * 1024

/** `parseExactObject` of JSON in a string of a client; undefined beyond limits of its own as well. */
export function parseNestedObject(text: string): JsonObject | undefined {
  if (text.length > maxNestedLength || limitExceeded(text) !== undefined) return undefined
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

/** JSON text of a value that came from an upstream; undefined when it is nested too deep to be written. */
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

function nestingDepth(text: string): number {
  const scan = createNestingScan()
  scan.push(text)
  return scan.deepest
}

/** Follows the brackets of JSON text that arrives in fragments, without judging whether it is valid. */
export type NestingScan = {
  push(fragment: string): void
  /** Whether the outermost object or array has been closed. */
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
