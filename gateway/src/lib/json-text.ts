import { isJsonObject, type JsonObject, type JsonValue } from './json.ts'

/** Where one member of the outermost object stands in the text; the value's text is `[valueStart, valueEnd)`. */
export type JsonMember = { name: string; keyStart: number; valueStart: number; valueEnd: number }

/** A JSON object together with the text it was read from. */
export type JsonText = {
  kind: 'object'
  text: string
  value: JsonObject
  members: readonly JsonMember[]
  /** Index just behind the opening brace. */
  open: number
}

export type JsonTextProblem =
  | { kind: 'invalid'; message: string }
  /** `path` names the member, for example `messages[0].role`. */
  | { kind: 'duplicate'; path: string }

/** Deeper nesting than this is refused, so that whoever walks the value may recurse. */
export const maxJsonDepth = 200

/**
 * Reads the text of a JSON object, refusing any object in it, at whatever depth, that holds a key twice:
 * RFC 8259 section 4 leaves their meaning open, so a check and an upstream could read two different values.
 */
export function readJsonObject(text: string): JsonText | JsonTextProblem {
  const scan = scanStructure(text)
  if (scan === undefined) return { kind: 'invalid', message: `nested deeper than ${maxJsonDepth} levels` }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'invalid', message: 'not valid JSON' }
  }
  if (!isJsonObject(value)) return { kind: 'invalid', message: 'not a JSON object' }
  // JSON.parse keeps one of several equal keys, after unescaping them: fewer members than colons means duplicates.
  if (countMembers(value) !== scan.colons) return { kind: 'duplicate', path: findDuplicate(text) }
  const members = scan.members.map(({ keyEnd, ...span }) => ({
    name: keyName(text, span.keyStart, keyEnd),
    ...span,
  }))
  return { kind: 'object', text, value, members, open: text.indexOf('{') + 1 }
}

/** The text of one member's value, or undefined when there is no such member. */
export function memberText(json: JsonText, name: string): string | undefined {
  const member = json.members.find((entry) => entry.name === name)
  return member && json.text.slice(member.valueStart, member.valueEnd)
}

/** Changes to the outermost object: JSON texts to set, names to leave out. */
export type JsonEdits = { set?: ReadonlyMap<string, string>; remove?: ReadonlySet<string> }

/** The text with some members of the outermost object set or left out; everything else stays byte for byte. */
export function editTopLevel(json: JsonText, { set, remove }: JsonEdits): string {
  const { text, members } = json
  let result = ''
  let copied = 0
  let keptEnd = json.open
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

type Span = { keyStart: number; keyEnd: number; valueStart: number; valueEnd: number }

/**
 * One pass that jumps through strings. Counts colons outside strings and notes the spans of the outermost members.
 * Says nothing about validity (its result is only used for text that JSON.parse accepts); undefined: too deep.
 */
function scanStructure(text: string): { colons: number; members: Span[] } | undefined {
  const members: Span[] = []
  let colons = 0
  let depth = 0
  let string = 0
  let stringEnd = 0
  let current: Span | undefined
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case quote:
        string = index
        index = endOfString(text, index)
        stringEnd = index + 1
        break
      case colon:
        colons += 1
        if (depth === 1) {
          current = {
            keyStart: string,
            keyEnd: stringEnd,
            valueStart: skipBlanks(text, index + 1),
            valueEnd: 0,
          }
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
        if (depth > maxJsonDepth) return undefined
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
  return { colons, members }
}

function close(text: string, members: Span[], span: Span, end: number): void {
  let valueEnd = end
  while (isBlank(text.charCodeAt(valueEnd - 1))) valueEnd -= 1
  span.valueEnd = valueEnd
  members.push(span)
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
