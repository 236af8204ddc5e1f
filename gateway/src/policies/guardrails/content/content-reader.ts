import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { FindAmbiguousName } from '../../../lib/json/names.ts'
import type { JsonPath, JsonSplice } from '../../../lib/json/splice.ts'
import { CheckFailure } from '../guard.ts'
import type { Reading } from './reading.ts'
import type { ContentScope } from './scopes/content-scope.ts'
import { writeBack } from './text-change.ts'

/** Text of a body, passed to guards as one, with the location of its parts. */
export type GuardedText = {
  readonly role: string
  /** Joins the parts for guards. */
  readonly separator: string
  readonly parts: readonly TextPart[]
  /** By default that of the role. */
  readonly scope?: ContentScope
  /** Common object of texts that are one for guards without scopes. */
  readonly group?: TextGroup
}

/** Role and separator of the joined texts of a group. */
export type TextGroup = { readonly role: string; readonly separator: string }

export type TextPart = {
  readonly text: string
  readonly path: JsonPath
  /** Location of log probabilities, which repeat the text by token and are removed if it is modified. */
  readonly logprobs?: JsonPath | undefined
  /** Whether the object of the text has no other text. */
  readonly isWhole?: boolean
  /** By default that of the text. */
  readonly scope?: ContentScope
  /** The text is the JSON at the path, not a string. */
  readonly isJson?: boolean
  /** The string at the path is the text in base64, behind a prefix. */
  readonly base64?: { readonly prefix: string }
}

/** Text of one event of a stream. */
export type StreamPiece = {
  /** Number of its choice, content block or output item. */
  readonly element: number
  /** Number of the part in the element. */
  readonly part: number
  readonly text: string
  readonly path: JsonPath
  /** Whether the text repeats the whole part instead of extending it. */
  readonly repeats: boolean
  /** As of `TextPart`. */
  readonly logprobs?: JsonPath | undefined
  /** Equal for all pieces of an element, by default `messages`. */
  readonly scope?: ContentScope | undefined
  readonly isJson?: boolean | undefined
}

/**
 * Number of the element with the optional texts of an element: fractions follow their element in order.
 * `index` is the number of a tool call.
 */
export function optionalElement(element: number, scope: ContentScope, index = 0): number {
  return element + (scope === 'reasoning' ? 0.25 : 0.5 + Math.min(index, 4095) / 8192)
}

/**
 * Reader of the texts of one client API: requests, responses and stream events. Throws `CheckFailure` on
 * unreadable content.
 */
export type ContentReader = {
  request(body: JsonObject, reading: Reading): GuardedText[]
  reply(body: JsonObject, reading: Reading): GuardedText[]
  /** Reports the texts of an event in order. A piece without text only marks its element as present. */
  event(event: JsonObject, found: (piece: StreamPiece) => void, reading: Reading): void
  /** Separator of the parts of an element in a stream. */
  readonly separator: string
  /** Finds ambiguous names in events; default: names of the other APIs. */
  readonly findAmbiguousName?: FindAmbiguousName
  /** JSON text for absent log probabilities. */
  readonly emptyLogprobs: string
  /** Whether request parts without text are removed, because providers refuse them. */
  readonly dropsEmptied: boolean
}

/** Returns a text as passed to guards. */
export function joinedText({ parts, separator }: GuardedText): string {
  const [first, ...rest] = parts
  if (first === undefined) return ''
  return rest.length === 0 ? first.text : parts.map(({ text }) => text).join(separator)
}

/** Returns the path of log probabilities, which contain every token of a text, if there are any. */
export function logprobsPath(value: JsonObject, path: JsonPath): JsonPath | undefined {
  const { logprobs } = value
  const isThere = Array.isArray(logprobs) ? logprobs.length > 0 : isJsonObject(logprobs)
  return isThere ? [...path, 'logprobs'] : undefined
}

/** Returns the objects of a list with their indexes. */
export function objectsIn(list: JsonValue | undefined): [index: number, item: JsonObject][] {
  if (!Array.isArray(list)) return []
  const found: [number, JsonObject][] = []
  for (const [index, item] of list.entries()) {
    if (typeof item === 'object' && item !== null && !Array.isArray(item)) found.push([index, item])
  }
  return found
}

/** As `objectsIn`. Throws `CheckFailure` if the value is not a list of objects. */
export function readableObjectsIn(list: JsonValue | undefined): [index: number, item: JsonObject][] {
  if (list === undefined || list === null) return []
  const found = objectsIn(list)
  if (!Array.isArray(list) || found.length < list.length) throw new CheckFailure('an unreadable list')
  return found
}

export function stringOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Returns the number of an element, by default its position. */
export function numberOf(value: JsonValue | undefined, position: number): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : position
}

/** Returns the JSON changes that replace the texts of a body with `contents`. */
export function splicesFor(
  texts: readonly GuardedText[],
  contents: readonly string[],
  { dropsEmptied, emptyLogprobs: noEcho }: Pick<ContentReader, 'dropsEmptied' | 'emptyLogprobs'>,
): JsonSplice[] {
  const splices: JsonSplice[] = []
  const echoes = new Set<JsonPath>()
  for (const [index, text] of texts.entries()) {
    const content = contents[index]
    if (content === undefined || content === joinedText(text)) continue
    const { parts, separator } = text
    const written = writeBack(
      parts.map((part) => part.text),
      separator,
      content,
    )
    if (written === undefined) throw new CheckFailure('text for an element without text')
    const keepsSome = written.some((part) => part !== '')
    for (const [position, part] of parts.entries()) {
      if (part.logprobs !== undefined && !echoes.has(part.logprobs)) {
        echoes.add(part.logprobs)
        splices.push({ kind: 'set', path: part.logprobs, json: noEcho })
      }
      const now = written[position] ?? ''
      if (now === part.text) continue
      const isDropped = now === '' && dropsEmptied && keepsSome && part.isWhole === true
      if (isDropped) splices.push({ kind: 'remove', path: part.path.slice(0, -1) })
      else splices.push({ kind: 'set', path: part.path, json: encoded(part, now) })
    }
  }
  return splices
}

function encoded({ isJson, base64 }: TextPart, text: string): string {
  if (isJson === true) return text
  return JSON.stringify(base64 ? base64.prefix + Buffer.from(text).toString('base64') : text)
}
