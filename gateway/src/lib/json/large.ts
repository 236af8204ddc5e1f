import { isUtf8 } from 'node:buffer'
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
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts'
import {
  itemsPerElement,
  type JsonLimits,
  tooDeep,
  tooManyElements,
  tooManyItems,
  tooManyMembers,
} from './limits.ts'
import { endOfString as textStringEnd } from './string.ts'
import {
  buildValue,
  findDuplicate,
  type JsonMember,
  type JsonTextProblem,
  look,
  parseScalar,
  type Seen,
} from './text.ts'

/** A JSON object read from bytes, with the places of its members in bytes. */
export type LargeJson = {
  kind: 'object'
  value: JsonObject
  members: JsonMember[]
  /** Whether numbers beyond 2^53 are in it. */
  hasLargeNumbers: boolean
}

export type LargeJsonOptions = {
  limits: JsonLimits
  /**
   * Reads pieces of text in place of `JSON.parse`, for numbers that a double cannot represent. Only for text that was checked
   * before, or need not be: of equal keys the last one counts.
   */
  unchecked?: ((text: string) => unknown) | undefined
}

/** Bytes of text that are parsed in one step: below 1 ms. */
const pieceBytes = 64 * 1024
/** Steps of the scan between two pauses. */
const scanSteps = 16 * 1024
/** Most bytes between two characters of structure: `JSON.parse` reads a number, or blanks, in one step. */
const maxScalarBytes = 64 * 1024
const tooLongScalar = `of more than ${maxScalarBytes} digits or blanks in a row`

/** An open array or object. Its text up to `start` is parsed, if there is a value: small ones are parsed with their parent. */
type Level = {
  readonly isObject: boolean
  readonly open: number
  value: JsonObject | JsonValue[] | undefined
  /** Start of the text that is not parsed yet. */
  start: number
  /** The last comma at this level, or -1. */
  comma: number
  /** Position in the grammar at `start`. */
  at: 'first' | 'behind comma' | 'behind value'
  colons: number
}

class Refused extends Error {
  readonly problem: JsonTextProblem
  constructor(problem: JsonTextProblem) {
    super(problem.kind)
    this.problem = problem
  }
}

const invalid = (message: string) => new Refused({ kind: 'invalid', message })
const malformed = () => invalid('not valid JSON')

/**
 * Reads a JSON object as `readJsonObject` does, in steps that are short however large it is: the text is scanned once, and
 * parsed in pieces cut at commas. Bytes that are not valid UTF-8 are the caller's to refuse.
 */
function* readLargeJson(
  bytes: Buffer,
  { limits, unchecked }: LargeJsonOptions,
): Generator<void, LargeJson | JsonTextProblem> {
  try {
    return yield* readSteps(bytes, limits, unchecked)
  } catch (error) {
    if (error instanceof Refused) return error.problem
    throw error
  }
}

/** As `readLargeJson`, for bytes that may not be UTF-8. */
export function* readJsonSteps(
  bytes: Buffer,
  options: LargeJsonOptions,
): Generator<void, LargeJson | JsonTextProblem> {
  if (!isUtf8(bytes)) return { kind: 'invalid', message: 'not valid UTF-8' }
  yield
  return yield* readLargeJson(bytes, options)
}

function* readSteps(
  bytes: Buffer,
  limits: JsonLimits,
  unchecked: ((text: string) => unknown) | undefined,
): Generator<void, LargeJson> {
  const { maxDepth, maxElements, maxMembers } = limits
  const levels: Level[] = []
  const members: JsonMember[] = []
  let root: JsonObject | JsonValue[] | undefined
  let elements = 0
  let commas = 0
  let escapedKeys = false
  let hasLargeNumbers = false
  let string = -1
  let stringEnd = -1
  let steps = 0
  let structure = 0
  let index = skipBlanks(bytes.subarray(0, maxScalarBytes), 0)
  if (bytes[index] !== openBrace) throw invalid(isJson(bytes, index) ? 'not a JSON object' : 'not valid JSON')

  for (; index < bytes.length; index += 1) {
    steps += 1
    if (steps >= scanSteps) {
      steps = 0
      yield
    }
    const byte = bytes[index] ?? 0
    if (isStructure(byte)) {
      if (index - structure > maxScalarBytes) throw invalid(tooLongScalar)
      structure = index
    }
    const level = levels.at(-1)
    switch (byte) {
      case quote: {
        if (level === undefined) throw malformed()
        string = index
        stringEnd = yield* endOfString(bytes, index)
        index = stringEnd
        structure = stringEnd
        if (stringEnd - string > pieceBytes) yield* addString(level)
        break
      }
      case colon:
        elements += 1
        if (elements > maxElements) throw invalid(tooManyElements(limits))
        if (level === undefined) throw malformed()
        level.colons += 1
        if (level.colons > maxMembers) throw invalid(tooManyMembers(limits))
        if (!escapedKeys) escapedKeys = hasBackslash(bytes, string, stringEnd)
        if (levels.length === 1) openMember()
        break
      case comma:
        commas += 1
        if (commas > maxElements * itemsPerElement) throw invalid(tooManyItems(limits))
        if (level === undefined) throw malformed()
        if (levels.length === 1) closeMember(index)
        if (level.at === 'behind value') passComma(level)
        else if (index - level.start > pieceBytes) {
          materialize()
          cut(level, index)
          level.start = index + 1
          level.at = 'behind comma'
          yield
        }
        level.comma = index
        break
      case openBrace:
      case openBracket:
        elements += 1
        if (elements > maxElements) throw invalid(tooManyElements(limits))
        if (levels.length >= maxDepth) throw invalid(tooDeep(limits))
        if (root !== undefined) throw malformed()
        levels.push(openLevel(bytes[index] === openBrace, index))
        if (levels.length === 1) materialize()
        break
      case closeBrace:
      case closeBracket:
        if (level === undefined || level.isObject !== (bytes[index] === closeBrace)) throw malformed()
        if (levels.length === 1) closeMember(index)
        close(level)
        break
      default:
        if (root !== undefined && !isBlank(bytes[index])) throw malformed()
    }
  }
  if (root === undefined || levels.length > 0 || !isJsonObject(root)) throw malformed()
  return { kind: 'object', value: root, members, hasLargeNumbers }

  function openLevel(isObject: boolean, open: number): Level {
    return { isObject, open, value: undefined, start: open + 1, comma: -1, at: 'first', colons: 0 }
  }

  /** Gives values to all open levels, so that parts can be added to the innermost one. */
  function materialize(): void {
    for (const [depth, level] of levels.entries()) {
      if (level.value !== undefined) continue
      const value: JsonObject | JsonValue[] = level.isObject ? {} : []
      const parent = levels[depth - 1]
      if (parent !== undefined) addValue(parent, level.open, value)
      level.value = value
    }
  }

  /** Adds a value that starts at `valueStart`, after what stands before it. */
  function addValue(level: Level, valueStart: number, value: JsonValue): void {
    if (level.at === 'behind value') throw malformed()
    if (level.comma >= level.start) {
      cut(level, level.comma)
      level.start = level.comma + 1
      level.at = 'behind comma'
    }
    const before = bytes.toString('utf8', level.start, valueStart)
    if (level.isObject) setOnce(level, keyIn(before), value)
    else {
      if (!isBlankText(before)) throw malformed()
      if (Array.isArray(level.value)) level.value.push(value)
    }
    level.at = 'behind value'
  }

  /** The key in `"key" :`, with blanks. */
  function keyIn(text: string): string {
    const member = parsePiece(`{${text}0}`)
    const [key, ...more] = isJsonObject(member) ? Object.keys(member) : []
    if (key === undefined || more.length > 0) throw malformed()
    return key
  }

  function setOnce(level: Level, key: string, value: JsonValue): void {
    const { value: object } = level
    if (!isJsonObject(object)) throw malformed()
    if (!unchecked && Object.hasOwn(object, key)) throw duplicate(key)
    if (key !== '__proto__') object[key] = value
    else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  }

  /** Parses the text of a level up to `end`, which must be members or items. */
  function cut(level: Level, end: number): void {
    const text = bytes.toString('utf8', level.start, end)
    const piece = parsePiece(level.isObject ? `{${text}}` : `[${text}]`)
    if (Array.isArray(piece)) {
      if (piece.length === 0 || !Array.isArray(level.value)) throw malformed()
      for (const item of piece) level.value.push(item)
    } else if (isJsonObject(piece)) {
      let isEmpty = true
      for (const key in piece) {
        isEmpty = false
        setOnce(level, key, piece[key] ?? null)
      }
      if (isEmpty) throw malformed()
    }
  }

  function parsePiece(text: string): JsonObject | JsonValue[] {
    let value: unknown
    try {
      value = (unchecked ?? JSON.parse)(text)
    } catch {
      throw malformed()
    }
    if (escapedKeys && !unchecked) value = buildValue(text, parseScalar)
    if (!isJsonObject(value) && !isJsonArray(value)) throw malformed()
    if (unchecked) return value
    const piece = value
    const seen: Seen = { members: 0, hasLargeNumbers: false }
    look(piece, seen)
    if (seen.hasLargeNumbers) hasLargeNumbers = true
    if (seen.members !== countColons(text)) throw duplicate(findDuplicate(text))
    return piece
  }

  function duplicate(path: string): Refused {
    return new Refused({ kind: 'duplicate', path })
  }

  /** The comma behind a value that was added by itself. */
  function passComma(level: Level): void {
    if (!isBlankBytes(bytes.subarray(level.start, index))) throw malformed()
    level.start = index + 1
    level.at = 'behind comma'
  }

  function* addString(level: Level): Generator<void> {
    if (bytes[skipBlanks(bytes, stringEnd + 1)] === colon)
      throw invalid('an object with a member name that is too long')
    materialize()
    const text = yield* parseString(bytes, string, stringEnd)
    addValue(level, string, text)
    level.start = stringEnd + 1
    yield
  }

  function close(level: Level): void {
    levels.pop()
    if (level.value === undefined) return
    const isBlankRest = isBlankBytes(bytes.subarray(level.start, index))
    if (level.at === 'behind value' && !isBlankRest) throw malformed()
    if (level.at === 'behind comma' || (level.at === 'first' && !isBlankRest)) cut(level, index)
    const parent = levels.at(-1)
    if (parent) parent.start = index + 1
    else root = level.value
  }

  function openMember(): void {
    const text = bytes.toString('utf8', string, stringEnd + 1)
    if (bytes[string] !== quote || string < (levels[0]?.open ?? 0)) throw malformed()
    let name: unknown
    try {
      name = JSON.parse(text)
    } catch {
      throw malformed()
    }
    const valueStart = skipBlanks(bytes, index + 1)
    members.push({ name: String(name), keyStart: string, valueStart, valueEnd: -1 })
  }

  function closeMember(end: number): void {
    const member = members.at(-1)
    if (member === undefined || member.valueEnd !== -1) return
    let valueEnd = end
    while (isBlank(bytes[valueEnd - 1])) valueEnd -= 1
    member.valueEnd = valueEnd
  }
}

/** Index of the quote that closes the string; throws where none does. */
function* endOfString(bytes: Buffer, start: number): Generator<void, number> {
  let index = start + 1
  for (let steps = 0; ; steps += 64) {
    if (steps >= scanSteps) {
      steps = 0
      yield
    }
    // Strings without escapes are skipped by the engine; a byte at a time costs less where quotes are escaped.
    const end = bytes.indexOf(quote, index)
    if (end === -1) throw malformed()
    let first = end
    while (first > index && bytes[first - 1] === backslash) {
      first -= 1
      if ((end - first) % scanSteps === 0) yield
    }
    if ((end - first) % 2 === 0) return end
    const near = Math.min(end + 64, bytes.length)
    for (index = end + 1; index < near; index += 1) {
      const byte = bytes[index]
      if (byte === backslash) index += 1
      else if (byte === quote) return index
    }
  }
}

/** The value of a long string, in pieces that do not cut an escape or a character. */
function* parseString(bytes: Buffer, start: number, end: number): Generator<void, string> {
  let text = ''
  for (let from = start + 1; from < end; ) {
    const to = pieceEnd(bytes, from, end)
    try {
      text += JSON.parse(`"${bytes.toString('utf8', from, to)}"`)
    } catch {
      throw malformed()
    }
    from = to
    yield
  }
  return text
}

const stringPieceBytes = 256 * 1024

function pieceEnd(bytes: Buffer, from: number, end: number): number {
  let to = from + stringPieceBytes
  if (to >= end) return end
  // Not inside a character of several bytes, nor inside an escape: `\uXXXX` has six.
  while (((bytes[to] ?? 0) & 0xc0) === 0x80) to -= 1
  for (let back = 1; back <= 5; back += 1) {
    const at = to - back
    if (bytes[at] !== backslash || !startsEscape(bytes, at, from)) continue
    const length = bytes[at + 1] === 0x75 ? 6 : 2
    return at + length > to ? at : to
  }
  return to
}

/** Whether the backslash is the first character of an escape: an even number of backslashes stands before it. */
function startsEscape(bytes: Buffer, at: number, from: number): boolean {
  let first = at
  while (first > from && bytes[first - 1] === backslash) first -= 1
  return (at - first) % 2 === 0
}

/** Guard of what `JSON.parse` returns for text that starts with a bracket. */
function isJsonArray(value: unknown): value is JsonValue[] {
  return Array.isArray(value)
}

function countColons(text: string): number {
  let colons = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === quote) index = textStringEnd(text, index)
    else if (code === colon) colons += 1
  }
  return colons
}

function isStructure(byte: number): boolean {
  return (
    byte === quote ||
    byte === comma ||
    byte === colon ||
    byte === openBracket ||
    byte === closeBracket ||
    byte === openBrace ||
    byte === closeBrace
  )
}

function hasBackslash(bytes: Buffer, start: number, end: number): boolean {
  for (let index = start; index < end; index += 1) if (bytes[index] === backslash) return true
  return false
}

function isJson(bytes: Buffer, index: number): boolean {
  return bytes[index] === openBracket || bytes[index] === quote
}

function skipBlanks(bytes: Buffer, start: number): number {
  let index = start
  while (isBlank(bytes[index])) index += 1
  return index
}

function isBlankBytes(bytes: Buffer): boolean {
  return skipBlanks(bytes, 0) === bytes.length
}

function isBlankText(text: string): boolean {
  return /^[ \t\r\n]*$/.test(text)
}

function isBlank(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}
