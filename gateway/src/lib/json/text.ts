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
import {
  type ExactJsonObject,
  type ExactJsonValue,
  isExactJsonObject,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from './json.ts'
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
import { endOfString } from './string.ts'

/** Where one member of the outermost object stands in the text; the value's text is `[valueStart, valueEnd)`. */
export type JsonMember = { name: string; keyStart: number; valueStart: number; valueEnd: number }

type LargeText = {
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  /** The object with exact integers, if it has numbers beyond 2^53. */
  readonly exact: ExactJsonObject | undefined
}

/** A JSON object together with the text it was read from. */
export type JsonText = {
  kind: 'object'
  readonly text: string
  value: JsonObject
  /** Whether numbers beyond 2^53 are in it, which `value` has rounded; undefined where nobody has looked. */
  hasLargeNumbers?: boolean
  /** The text of a large object as bytes, with the places of its members in bytes: its text is made only when asked for. */
  large?: LargeText | undefined
}

export type JsonTextProblem =
  | { kind: 'invalid'; message: string }
  /** `path` names the member, for example `messages[0].role`. */
  | { kind: 'duplicate'; path: string }

/**
 * Reads the text of a JSON object, refusing any object in it, at whatever depth, that holds a key twice:
 * RFC 8259 section 4 leaves their meaning open, so a check and an upstream could read two different values.
 * Text beyond `limits` is refused before it is parsed.
 */
export function readJsonObject(
  text: string,
  limits: JsonLimits = defaultJsonLimits,
): JsonText | JsonTextProblem {
  const scan = scanStructure(text, limits)
  if (typeof scan === 'string') return { kind: 'invalid', message: scan }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'invalid', message: 'not valid JSON' }
  }
  if (scan.escapedKeys) value = buildValue(text, parseScalar)
  if (!isJsonObject(value)) return { kind: 'invalid', message: 'not a JSON object' }
  // JSON.parse keeps one of several equal keys, after unescaping them: fewer members than colons means duplicates.
  const seen: Seen = { members: 0, hasLargeNumbers: false }
  look(value, seen)
  if (seen.members !== scan.colons) return { kind: 'duplicate', path: findDuplicate(text) }
  return { kind: 'object', text, value, hasLargeNumbers: seen.hasLargeNumbers }
}

/** The limit that JSON text exceeds, for messages; undefined within all of them. */
export function limitExceeded(text: string, limits: JsonLimits = defaultJsonLimits): string | undefined {
  const scan = scanStructure(text, limits)
  return typeof scan === 'string' ? scan : undefined
}

/** The same object with exact integers; the value itself where it has no number beyond 2^53. */
export function exactObject(json: JsonText): ExactJsonObject {
  const { value, hasLargeNumbers, large } = json
  if (large) return large.exact ?? value
  if (hasLargeNumbers === false) return value
  if (hasLargeNumbers === undefined && !containsLarge(value)) return value
  const exact = buildExact(json.text)
  return isExactJsonObject(exact) ? exact : value
}

/** The value of JSON text with exact integers. */
export function buildExact(text: string): ExactJsonValue {
  return buildValue<ExactJsonValue>(text, parseExactScalar)
}

function containsLarge(value: JsonObject): boolean {
  const seen: Seen = { members: 0, hasLargeNumbers: false }
  look(value, seen)
  return seen.hasLargeNumbers
}

/** The JSON text of a value with exact integers. */
export function exactText(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'bigint' ? JSON.rawJSON(String(member)) : member,
  )
}

/** A large object, read from bytes. */
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

/** The limit that the structure of a text exceeds; undefined if none. Costs a scan, and says nothing about validity. */
export function exceededLimit(text: string, limits: JsonLimits = defaultJsonLimits): string | undefined {
  const scan = scanStructure(text, limits)
  return typeof scan === 'string' ? scan : undefined
}

/** The text of one member's value, or undefined when there is no such member. */
export function memberText(json: JsonText, name: string): string | undefined {
  const { large } = json
  const member = (large?.members ?? membersOf(json.text)).find((entry) => entry.name === name)
  if (member === undefined) return undefined
  return large
    ? large.bytes.toString('utf8', member.valueStart, member.valueEnd)
    : json.text.slice(member.valueStart, member.valueEnd)
}

/** Changes to the outermost object: JSON texts to set, names to leave out. */
export type JsonEdits = { set?: ReadonlyMap<string, string>; remove?: ReadonlySet<string> }

/** The text with some members of the outermost object set or left out; everything else stays byte for byte. */
export function editTopLevel(json: JsonText, edits: JsonEdits): string {
  if (json.large) return editBytes(json, edits).toString()
  const { text } = json
  const places = { members: membersOf(text), open: text.indexOf('{') + 1, end: text.length }
  let result = ''
  for (const piece of edited(places, edits)) {
    result += typeof piece === 'string' ? piece : text.slice(piece.from, piece.to)
  }
  return result
}

/** As `editTopLevel`, as bytes; a large object is not made text for it. */
export function editBytes(json: JsonText, edits: JsonEdits): Buffer {
  const { large } = json
  if (large === undefined) return Buffer.from(editTopLevel(json, edits))
  const { bytes, members } = large
  const places = { members, open: bytes.indexOf('{') + 1, end: bytes.length }
  return Buffer.concat(
    edited(places, edits).map((piece) =>
      typeof piece === 'string' ? Buffer.from(piece) : bytes.subarray(piece.from, piece.to),
    ),
  )
}

type Places = { members: readonly JsonMember[]; open: number; end: number }

/** The edited object: new texts, and ranges of the old one. */
function edited(places: Places, { set, remove }: JsonEdits): (string | { from: number; to: number })[] {
  const { members } = places
  const result: (string | { from: number; to: number })[] = []
  let copied = 0
  let keptEnd = places.open
  let kept = 0
  const added = new Map(set)
  for (const [index, member] of members.entries()) {
    const replacement = set?.get(member.name)
    if (replacement !== undefined) {
      added.delete(member.name)
      result.push({ from: copied, to: member.valueStart }, replacement)
      copied = member.valueEnd
    } else if (remove?.has(member.name)) {
      // A member goes with the comma before it or, when none before it stays, with the one behind it.
      const from = kept > 0 ? Math.max(copied, keptEnd) : member.keyStart
      result.push({ from: copied, to: from })
      copied = kept > 0 ? member.valueEnd : (members[index + 1]?.keyStart ?? member.valueEnd)
      continue
    }
    kept += 1
    keptEnd = member.valueEnd
  }
  if (added.size > 0) {
    const end = Math.max(copied, keptEnd)
    result.push({ from: copied, to: end })
    copied = end
  }
  for (const [name, value] of added) {
    result.push(`${kept > 0 ? ',' : ''}${JSON.stringify(name)}:${value}`)
    kept += 1
  }
  result.push({ from: copied, to: places.end })
  return result
}

/**
 * Counts colons outside strings, jumping through strings, and notes whether a key is written with escapes. Says nothing
 * about validity (its result is only used for text that JSON.parse accepts). Returns the reason where a limit is exceeded.
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
        if (mayEscape && !escapedKeys) escapedKeys = holdsBackslash(text, string, stringEnd)
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

function holdsBackslash(text: string, start: number, end: number): boolean {
  for (let index = start; index < end; index += 1) if (text.charCodeAt(index) === backslash) return true
  return false
}

/**
 * The value of text that JSON.parse accepts, member by member. V8 (seen in Node 26.10) misreads keys written with escapes
 * once it has met an object with a backslash in a key: after `{"a":1,"\\\\":2}` it reads `{"a":1,"\\u0062":2}` as if the
 * key were a backslash. A client could make the gateway see another request than the upstream does.
 */
export function buildValue<Value>(text: string, readScalar: (text: string) => Value): Built<Value> {
  let index = 0
  return build()

  function build(): Built<Value> {
    index = skipBlanks(text, index)
    const code = text.charCodeAt(index)
    if (code === openBrace) return buildObject()
    return code === openBracket ? buildArray() : buildScalar()
  }

  function buildObject(): { [key: string]: Built<Value> } {
    const object: { [key: string]: Built<Value> } = {}
    if (isEmpty(closeBrace)) return object
    do {
      index = skipBlanks(text, index)
      const key = String(buildScalar())
      index = skipBlanks(text, index) + 1
      setMember(object, key, build())
    } while (goesOn())
    return object
  }

  function buildArray(): Built<Value>[] {
    const items: Built<Value>[] = []
    if (isEmpty(closeBracket)) return items
    do items.push(build())
    while (goesOn())
    return items
  }

  /** Steps over an opening bracket, and over the closing one when nothing stands between them. */
  function isEmpty(closing: number): boolean {
    index = skipBlanks(text, index + 1)
    if (text.charCodeAt(index) !== closing) return false
    index += 1
    return true
  }

  /** Steps over a comma or the closing bracket. */
  function goesOn(): boolean {
    index = skipBlanks(text, index) + 1
    return text.charCodeAt(index - 1) === comma
  }

  function buildScalar(): Value {
    const start = index
    if (text.charCodeAt(index) === quote) index = endOfString(text, index) + 1
    else while (index < text.length && !endsScalar(text.charCodeAt(index))) index += 1
    return readScalar(text.slice(start, index))
  }
}

type Built<Value> = Value | Built<Value>[] | { [key: string]: Built<Value> }

export function parseScalar(text: string): JsonValue {
  return JSON.parse(text)
}

/** Integers beyond 64 bits stay rounded: expressions cannot calculate with them. */
function parseExactScalar(text: string): ExactJsonValue {
  if (!/^-?\d{16,19}$/.test(text)) return JSON.parse(text)
  const exact = BigInt(text)
  const isSafe = Number.isSafeInteger(Number(exact))
  return isSafe || BigInt.asIntN(64, exact) !== exact ? Number(exact) : exact
}

/** Sets a member as `JSON.parse` does: `__proto__` is a key like any other. Defining every member would cost 5 times as much. */
function setMember<Value>(object: { [key: string]: Value }, key: string, value: Value): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

function endsScalar(code: number): boolean {
  return code === comma || code === closeBrace || code === closeBracket || isBlank(code)
}

/** The members of the outermost object, in text that is known to be one. Needed only for edits, so not found before. */
export function membersOf(text: string): JsonMember[] {
  const members: JsonMember[] = []
  let depth = 0
  let string = 0
  let stringEnd = 0
  let current: JsonMember | undefined
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case quote:
        string = index
        index = endOfString(text, index)
        stringEnd = index + 1
        break
      case colon:
        if (depth !== 1) break
        current = {
          name: keyName(text, string, stringEnd),
          keyStart: string,
          valueStart: skipBlanks(text, index + 1),
          valueEnd: 0,
        }
        break
      case comma:
        if (depth === 1 && current) {
          close(text, members, current, index)
          current = undefined
        }
        break
      case openBrace:
      case openBracket:
        depth += 1
        break
      case closeBrace:
      case closeBracket:
        if (depth === 1 && current) {
          close(text, members, current, index)
          current = undefined
        }
        depth -= 1
        break
    }
  }
  return members
}

function close(text: string, members: JsonMember[], member: JsonMember, end: number): void {
  let valueEnd = end
  while (isBlank(text.charCodeAt(valueEnd - 1))) valueEnd -= 1
  member.valueEnd = valueEnd
  members.push(member)
}

function skipBlanks(text: string, start: number): number {
  let index = start
  while (isBlank(text.charCodeAt(index))) index += 1
  return index
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

export type Seen = { members: number; hasLargeNumbers: boolean }

/** Counts members at every depth, and notes numbers that `JSON.parse` has rounded. */
export function look(value: JsonObject | JsonValue[], seen: Seen): void {
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'object' && item !== null) look(item, seen)
      else if (typeof item === 'number' && isLarge(item)) seen.hasLargeNumbers = true
    }
    return
  }
  for (const key in value) {
    seen.members += 1
    const member = value[key]
    if (typeof member === 'object' && member !== null) look(member, seen)
    else if (typeof member === 'number' && isLarge(member)) seen.hasLargeNumbers = true
  }
}

function isLarge(number: number): boolean {
  return number > Number.MAX_SAFE_INTEGER || number < Number.MIN_SAFE_INTEGER
}

function keyName(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? String(JSON.parse(text.slice(start, end))) : raw
}

type Level = { keys: Set<string> | undefined; key: string; index: number }

/** Path of the first key that its object holds already, in text that JSON.parse accepts. */
export function findDuplicate(text: string): string {
  const levels: Level[] = []
  let last = ''
  for (let index = 0; index < text.length; index += 1) {
    const level = levels.at(-1)
    switch (text.charCodeAt(index)) {
      case quote: {
        const end = endOfString(text, index)
        last = text.slice(index, end + 1)
        index = end
        break
      }
      case colon:
        if (level?.keys === undefined) break
        level.key = keyName(last, 0, last.length)
        if (level.keys.has(level.key)) return pathOf(levels)
        level.keys.add(level.key)
        break
      case comma:
        if (level) level.index += 1
        break
      case openBrace:
        levels.push({ keys: new Set(), key: '', index: 0 })
        break
      case openBracket:
        levels.push({ keys: undefined, key: '', index: 0 })
        break
      case closeBrace:
      case closeBracket:
        levels.pop()
        break
    }
  }
  return pathOf(levels)
}

function pathOf(levels: readonly Level[]): string {
  let path = ''
  for (const { keys, key, index } of levels) path += keys ? (path === '' ? key : `.${key}`) : `[${index}]`
  return path
}
