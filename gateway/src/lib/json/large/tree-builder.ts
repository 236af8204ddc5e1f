import { buildValue, parseScalar, setMember } from '../build.ts'
import { colon, quote } from '../characters.ts'
import { findDuplicate, inspectValue, type ValueFacts } from '../inspect.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts'
import { endOfString } from '../string.ts'
import { isBlankRange } from './byte-scan.ts'
import { duplicate, malformed } from './rejection.ts'

/** Reads a piece of text in place of `JSON.parse`, for numbers that a double cannot represent. */
export type ParseUnchecked = (text: string) => unknown

/** An open array or object. Small ones have no value: they are parsed with their parent. */
export type Level = {
  readonly isObject: boolean
  readonly open: number
  value: JsonObject | JsonValue[] | undefined
  /** Start of the unparsed text. */
  start: number
  /** Position of the last comma at this level, or -1. */
  comma: number
  /** Position in the grammar at `start`. */
  at: 'first' | 'behind comma' | 'behind value'
  colons: number
}

/** Builds the value of a scanned text from pieces cut at commas. */
export type TreeBuilder = {
  /** Open levels, outermost first. */
  readonly levels: readonly Level[]
  /** The outermost value, once it is closed. */
  root: JsonObject | JsonValue[] | undefined
  /** Set by the scan at the first key written with escapes. */
  escapedKeys: boolean
  hasLargeNumbers: boolean
  open(isObject: boolean, index: number): void
  /** Closes the innermost level with the bracket at `index`. */
  close(level: Level, index: number): void
  /** Parses the text of a level before the comma at `index`. */
  cut(level: Level, index: number): void
  /** Handles the comma at `index` behind a value added by `addValue`. */
  passComma(level: Level, index: number): void
  /** Adds a parsed value of the range from `start` to `end`, and the text before it. */
  addValue(level: Level, range: { start: number; end: number }, value: JsonValue): void
}

export function createTreeBuilder(bytes: Buffer, unchecked: ParseUnchecked | undefined): TreeBuilder {
  const levels: Level[] = []
  const parsePiece = createPieceParser(unchecked, () => builder)

  /** Creates the values of all open levels, so that parts can be added to the innermost one. */
  function materialize(): void {
    for (const [depth, level] of levels.entries()) {
      if (level.value !== undefined) continue
      const value: JsonObject | JsonValue[] = level.isObject ? {} : []
      const parent = levels[depth - 1]
      if (parent !== undefined) add(parent, level.open, value)
      level.value = value
    }
  }

  function add(level: Level, valueStart: number, value: JsonValue): void {
    if (level.at === 'behind value') throw malformed()
    if (level.comma >= level.start) {
      addPiece(level, level.comma)
      startBehind(level, level.comma)
    }
    const before = bytes.toString('utf8', level.start, valueStart)
    if (level.isObject) setOnce(level, keyIn(before, parsePiece), value)
    else {
      if (!/^[ \t\r\n]*$/.test(before)) throw malformed()
      if (Array.isArray(level.value)) level.value.push(value)
    }
    level.at = 'behind value'
  }

  /** Parses the text of a level up to `end`, which must be members or items. */
  function addPiece(level: Level, end: number): void {
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

  function setOnce({ value: object }: Level, key: string, value: JsonValue): void {
    if (!isJsonObject(object)) throw malformed()
    if (!unchecked && Object.hasOwn(object, key)) throw duplicate(key)
    setMember(object, key, value)
  }

  const builder: TreeBuilder = {
    levels,
    root: undefined,
    escapedKeys: false,
    hasLargeNumbers: false,
    open(isObject, index) {
      levels.push({
        isObject,
        open: index,
        value: undefined,
        start: index + 1,
        comma: -1,
        at: 'first',
        colons: 0,
      })
      if (levels.length === 1) materialize()
    },
    close(level, index) {
      levels.pop()
      if (level.value === undefined) return
      const isBlankRest = isBlankRange(bytes, level.start, index)
      if (level.at === 'behind value' && !isBlankRest) throw malformed()
      if (level.at === 'behind comma' || (level.at === 'first' && !isBlankRest)) addPiece(level, index)
      const parent = levels.at(-1)
      if (parent) parent.start = index + 1
      else builder.root = level.value
    },
    cut(level, index) {
      materialize()
      addPiece(level, index)
      startBehind(level, index)
    },
    passComma(level, index) {
      if (!isBlankRange(bytes, level.start, index)) throw malformed()
      startBehind(level, index)
    },
    addValue(level, { start, end }, value) {
      materialize()
      add(level, start, value)
      level.start = end
    },
  }
  return builder
}

function startBehind(level: Level, comma: number): void {
  level.start = comma + 1
  level.at = 'behind comma'
}

type PieceParser = (text: string) => JsonObject | JsonValue[]

/** Parses an object or array, and reports its large numbers to the builder. */
function createPieceParser(
  unchecked: ParseUnchecked | undefined,
  builder: () => Pick<TreeBuilder, 'escapedKeys' | 'hasLargeNumbers'>,
): PieceParser {
  return (text) => {
    let value: unknown
    try {
      value = (unchecked ?? JSON.parse)(text)
    } catch {
      throw malformed()
    }
    if (!unchecked && builder().escapedKeys) value = buildValue(text, parseScalar)
    if (!isJsonObject(value) && !isJsonArray(value)) throw malformed()
    if (unchecked) return value
    const facts: ValueFacts = { members: 0, hasLargeNumbers: false }
    inspectValue(value, facts)
    if (facts.hasLargeNumbers) builder().hasLargeNumbers = true
    if (facts.members !== countColons(text)) throw duplicate(findDuplicate(text))
    return value
  }
}

/** The key in `"key" :`, with blanks. */
function keyIn(text: string, parsePiece: PieceParser): string {
  const member = parsePiece(`{${text}0}`)
  const [key, ...more] = isJsonObject(member) ? Object.keys(member) : []
  if (key === undefined || more.length > 0) throw malformed()
  return key
}

/** Guard of results of `JSON.parse` for text that starts with a bracket. */
function isJsonArray(value: unknown): value is JsonValue[] {
  return Array.isArray(value)
}

function countColons(text: string): number {
  let colons = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === quote) index = endOfString(text, index)
    else if (code === colon) colons += 1
  }
  return colons
}
