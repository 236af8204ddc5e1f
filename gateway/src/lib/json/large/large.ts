import { isUtf8 } from 'node:buffer'
import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  isBlank,
  openBrace,
  openBracket,
  quote,
} from '../characters.ts'
import { isJsonObject, type JsonObject } from '../json.ts'
import {
  itemsPerElement,
  type JsonLimits,
  tooDeep,
  tooManyElements,
  tooManyItems,
  tooManyMembers,
} from '../limits.ts'
import type { JsonMember } from '../members.ts'
import type { JsonTextProblem } from '../text.ts'
import {
  endOfStringSteps,
  hasBackslash,
  isStructural,
  parseStringSteps,
  scanSteps,
  skipBlankBytes,
} from './byte-scan.ts'
import { invalid, malformed, RejectedJson } from './rejection.ts'
import { createTreeBuilder, type Level, type ParseUnchecked, type TreeBuilder } from './tree-builder.ts'

/** A JSON object read from bytes, with the byte positions of its members. */
export type LargeJson = {
  kind: 'object'
  value: JsonObject
  members: JsonMember[]
  /** Whether it has numbers beyond 2^53. */
  hasLargeNumbers: boolean
}

export type LargeJsonOptions = {
  limits: JsonLimits
  /** Only for text that needs no check, or was checked before: of equal keys the last one counts. */
  unchecked?: ParseUnchecked | undefined
}

/** Bytes of text parsed in one step: less than 1 ms. */
const pieceBytes = 64 * 1024
/** Maximum distance of structural characters: `JSON.parse` reads a number, or blanks, in one step. */
const maxScalarBytes = 64 * 1024
const tooLongScalar = `of more than ${maxScalarBytes} digits or blanks in a row`

/**
 * Reads a JSON object like `readJsonObject`, in short steps for any size: the bytes are scanned once, and
 * parsed in pieces cut at commas.
 */
export function* readJsonSteps(
  bytes: Buffer,
  { limits, unchecked }: LargeJsonOptions,
): Generator<void, LargeJson | JsonTextProblem> {
  if (!isUtf8(bytes)) return { kind: 'invalid', message: 'not valid UTF-8' }
  yield
  try {
    const builder = createTreeBuilder(bytes, unchecked)
    const members = createMemberIndex(bytes)
    yield* scan(bytes, limits, { builder, members })
    const { root, levels, hasLargeNumbers } = builder
    if (root === undefined || levels.length > 0 || !isJsonObject(root)) throw malformed()
    return { kind: 'object', value: root, members: members.found, hasLargeNumbers }
  } catch (error) {
    if (error instanceof RejectedJson) return error.problem
    throw error
  }
}

function* scan(
  bytes: Buffer,
  limits: JsonLimits,
  { builder, members }: { builder: TreeBuilder; members: MemberIndex },
): Generator<void> {
  const { maxDepth, maxElements, maxMembers } = limits
  const { levels } = builder
  let elements = 0
  let commas = 0
  let string = -1
  let stringEnd = -1
  let steps = 0
  let structure = 0
  let index = skipBlankBytes(bytes.subarray(0, maxScalarBytes), 0)
  if (bytes[index] !== openBrace) throw invalid(startProblem(bytes[index]))

  for (; index < bytes.length; index += 1) {
    steps += 1
    if (steps >= scanSteps) {
      steps = 0
      yield
    }
    const byte = bytes[index] ?? 0
    if (isStructural(byte)) {
      if (index - structure > maxScalarBytes) throw invalid(tooLongScalar)
      structure = index
    }
    const level = levels.at(-1)
    switch (byte) {
      case quote:
        if (level === undefined) throw malformed()
        string = index
        stringEnd = yield* endOfStringSteps(bytes, index)
        index = stringEnd
        structure = stringEnd
        if (stringEnd - string > pieceBytes) yield* addString(builder, level, { bytes, string, stringEnd })
        break
      case colon:
        elements += 1
        if (elements > maxElements) throw invalid(tooManyElements(limits))
        if (level === undefined) throw malformed()
        level.colons += 1
        if (level.colons > maxMembers) throw invalid(tooManyMembers(limits))
        if (!builder.escapedKeys) builder.escapedKeys = hasBackslash(bytes, string, stringEnd)
        if (levels.length === 1) members.open({ string, stringEnd, colonIndex: index }, level)
        break
      case comma:
        commas += 1
        if (commas > maxElements * itemsPerElement) throw invalid(tooManyItems(limits))
        if (level === undefined) throw malformed()
        if (levels.length === 1) members.close(index)
        if (level.at === 'behind value') builder.passComma(level, index)
        else if (index - level.start > pieceBytes) {
          builder.cut(level, index)
          yield
        }
        level.comma = index
        break
      case openBrace:
      case openBracket:
        elements += 1
        if (elements > maxElements) throw invalid(tooManyElements(limits))
        if (levels.length >= maxDepth) throw invalid(tooDeep(limits))
        if (builder.root !== undefined) throw malformed()
        builder.open(byte === openBrace, index)
        break
      case closeBrace:
      case closeBracket:
        if (level === undefined || level.isObject !== (byte === closeBrace)) throw malformed()
        if (levels.length === 1) members.close(index)
        builder.close(level, index)
        break
      default:
        if (builder.root !== undefined && !isBlank(byte)) throw malformed()
    }
  }
}

/** Adds a long string, decoded in pieces. */
function* addString(
  builder: TreeBuilder,
  level: Level,
  { bytes, string, stringEnd }: { bytes: Buffer; string: number; stringEnd: number },
): Generator<void> {
  if (bytes[skipBlankBytes(bytes, stringEnd + 1)] === colon)
    throw invalid('an object with a member name that is too long')
  const text = yield* parseStringSteps(bytes, string, stringEnd)
  builder.addValue(level, { start: string, end: stringEnd + 1 }, text)
  yield
}

type MemberIndex = {
  readonly found: JsonMember[]
  /** Adds a member of the outermost object at the colon behind its key. */
  open(key: { string: number; stringEnd: number; colonIndex: number }, outermost: Level): void
  /** Sets the end of the last member at the comma or brace behind it. */
  close(end: number): void
}

/** Locates the members of the outermost object. */
function createMemberIndex(bytes: Buffer): MemberIndex {
  const found: JsonMember[] = []
  return {
    found,
    open({ string, stringEnd, colonIndex }, outermost) {
      const text = bytes.toString('utf8', string, stringEnd + 1)
      if (bytes[string] !== quote || string < outermost.open) throw malformed()
      let name: unknown
      try {
        name = JSON.parse(text)
      } catch {
        throw malformed()
      }
      const valueStart = skipBlankBytes(bytes, colonIndex + 1)
      found.push({ name: String(name), keyStart: string, valueStart, valueEnd: -1 })
    },
    close(end) {
      const member = found.at(-1)
      if (member === undefined || member.valueEnd !== -1) return
      let valueEnd = end
      while (isBlank(bytes[valueEnd - 1])) valueEnd -= 1
      member.valueEnd = valueEnd
    },
  }
}

function startProblem(byte: number | undefined): string {
  return byte === openBracket || byte === quote ? 'not a JSON object' : 'not valid JSON'
}
