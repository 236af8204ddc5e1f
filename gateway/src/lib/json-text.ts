import { isJsonObject, type JsonObject, type JsonValue } from './json.ts'

/** Where one member of the outermost object stands in the text; the value's text is `[valueStart, valueEnd)`. */
export type JsonMember = { name: string; keyStart: number; valueStart: number; valueEnd: number }

/** A JSON object together with the text it was read from. */
export type JsonText = { kind: 'object'; text: string; value: JsonObject }

export type JsonTextProblem =
  | { kind: 'invalid'; message: string }
  /** `path` names the member, for example `messages[0].role`. */
  | { kind: 'duplicate'; path: string }

/** Deeper nesting than this is refused, so that whoever walks the value may recurse. */
export const maxJsonDepth = 200

/** More objects, arrays and members together are refused: a body of nothing but `{}` takes sixty times its size in memory. */
export const maxJsonParts = 1_000_000

/**
 * Reads the text of a JSON object, refusing any object in it, at whatever depth, that holds a key twice:
 * RFC 8259 section 4 leaves their meaning open, so a check and an upstream could read two different values.
 */
export function readJsonObject(text: string): JsonText | JsonTextProblem {
  const scan = scanStructure(text)
  if (scan === 'too deep') return { kind: 'invalid', message: `nested deeper than ${maxJsonDepth} levels` }
  if (scan === 'too many')
    return { kind: 'invalid', message: `of more than ${maxJsonParts} objects, arrays and members` }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'invalid', message: 'not valid JSON' }
  }
  if (scan.escapedKeys) value = buildValue(text)
  if (!isJsonObject(value)) return { kind: 'invalid', message: 'not a JSON object' }
  // JSON.parse keeps one of several equal keys, after unescaping them: fewer members than colons means duplicates.
  if (countMembers(value) !== scan.colons) return { kind: 'duplicate', path: findDuplicate(text) }
  return { kind: 'object', text, value }
}

/** The text of one member's value, or undefined when there is no such member. */
export function memberText(json: JsonText, name: string): string | undefined {
  const member = membersOf(json.text).find((entry) => entry.name === name)
  return member && json.text.slice(member.valueStart, member.valueEnd)
}

/** Changes to the outermost object: JSON texts to set, names to leave out. */
export type JsonEdits = { set?: ReadonlyMap<string, string>; remove?: ReadonlySet<string> }

/** The text with some members of the outermost object set or left out; everything else stays byte for byte. */
export function editTopLevel(json: JsonText, { set, remove }: JsonEdits): string {
  const { text } = json
  const members = membersOf(text)
  let result = ''
  let copied = 0
  let keptEnd = text.indexOf('{') + 1
  let kept = 0
  const added = new Map(set)
  for (const [index, member] of members.entries()) {
    const replacement = set?.get(member.name)
    if (replacement !== undefined) {
      added.delete(member.name)
      result += text.slice(copied, member.valueStart) + replacement
      copied = member.valueEnd
    } else if (remove?.has(member.name)) {
      // A member goes with the comma before it or, when none before it stays, with the one behind it.
      const from = kept > 0 ? Math.max(copied, keptEnd) : member.keyStart
      result += text.slice(copied, from)
      copied = kept > 0 ? member.valueEnd : (members[index + 1]?.keyStart ?? member.valueEnd)
      continue
    }
    kept += 1
    keptEnd = member.valueEnd
  }
  if (added.size === 0) return result + text.slice(copied)
  const end = Math.max(copied, keptEnd)
  result += text.slice(copied, end)
  for (const [name, value] of added) {
    result += `${kept > 0 ? ',' : ''}${JSON.stringify(name)}:${value}`
    kept += 1
  }
  return result + text.slice(end)
}

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const backslash = 0x5c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/**
 * Counts colons outside strings, jumping through strings, and notes whether a key is written with escapes. Says nothing
 * about validity (its result is only used for text that JSON.parse accepts).
 */
function scanStructure(text: string): { colons: number; escapedKeys: boolean } | 'too deep' | 'too many' {
  const mayEscape = text.includes('\\')
  let escapedKeys = false
  let colons = 0
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
      case colon:
        colons += 1
        if (colons + brackets > maxJsonParts) return 'too many'
        if (mayEscape && !escapedKeys) escapedKeys = holdsBackslash(text, string, stringEnd)
        break
      case openBrace:
      case openBracket:
        depth += 1
        brackets += 1
        if (depth > maxJsonDepth) return 'too deep'
        if (colons + brackets > maxJsonParts) return 'too many'
        break
      case closeBrace:
      case closeBracket:
        depth -= 1
        break
    }
  }
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
function buildValue(text: string): JsonValue {
  let index = 0
  return build()

  function build(): JsonValue {
    index = skipBlanks(text, index)
    const code = text.charCodeAt(index)
    if (code === openBrace) return buildObject()
    return code === openBracket ? buildArray() : buildScalar()
  }

  function buildObject(): JsonObject {
    const object: JsonObject = {}
    if (isEmpty(closeBrace)) return object
    do {
      index = skipBlanks(text, index)
      const key = String(buildScalar())
      index = skipBlanks(text, index) + 1
      // Defined, not assigned: `__proto__` is a key like any other.
      Object.defineProperty(object, key, {
        value: build(),
        writable: true,
        enumerable: true,
        configurable: true,
      })
    } while (goesOn())
    return object
  }

  function buildArray(): JsonValue[] {
    const items: JsonValue[] = []
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

  function buildScalar(): JsonValue {
    const start = index
    if (text.charCodeAt(index) === quote) index = endOfString(text, index) + 1
    else while (index < text.length && !endsScalar(text.charCodeAt(index))) index += 1
    return JSON.parse(text.slice(start, index))
  }
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

/** Index of the quote that closes the JSON string opened by the quote at `start`; the text's length when none does. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    if (text.charCodeAt(end - 1) !== backslash) return end
    let first = end - 1
    while (first > start && text.charCodeAt(first) === backslash) first -= 1
    // An even number of backslashes are escaped backslashes: the quote stands for itself.
    if ((end - 1 - first) % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

function skipBlanks(text: string, start: number): number {
  let index = start
  while (isBlank(text.charCodeAt(index))) index += 1
  return index
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

function countMembers(value: JsonObject | JsonValue[]): number {
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) count += countMembers(item)
    return count
  }
  for (const key in value) {
    count += 1
    const member = value[key]
    if (typeof member === 'object' && member !== null) count += countMembers(member)
  }
  return count
}

function keyName(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? String(JSON.parse(text.slice(start, end))) : raw
}

type Level = { keys: Set<string> | undefined; key: string; index: number }

/** Path of the first key that its object holds already, in text that JSON.parse accepts. */
function findDuplicate(text: string): string {
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
