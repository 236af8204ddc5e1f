import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonPath, JsonSplice } from '../../../lib/json/splice.ts'
import { CheckFailure } from '../guard.ts'
import type { Reading } from './reading.ts'
import { writeBack } from './text-change.ts'

/** A text of a body that is shown to guards as one: the parts it consists of, and where each of them stands. */
export type GuardedText = {
  readonly role: string
  /** Stands between the parts where they are shown. */
  readonly separator: string
  readonly parts: readonly TextPart[]
}

export type TextPart = {
  readonly text: string
  readonly path: JsonPath
  /** Where the text is said once more token by token, which has to go when the text changes. */
  readonly logprobs?: JsonPath | undefined
  /** True if the object that has the text consists of nothing else to check. */
  readonly isWhole?: boolean
}

/** Text in one event of a stream. */
export type StreamPiece = {
  /** Which of the texts that are shown it belongs to: a choice, a content block, an output item. */
  readonly element: number
  /** Which part of that. */
  readonly part: number
  readonly text: string
  readonly path: JsonPath
  /** The text of the part as a whole, said once more: no addition to it. */
  readonly repeats: boolean
  /** As of `TextPart`. */
  readonly logprobs?: JsonPath | undefined
}

/** What one client API has for texts: requests, answers and events of streams. Throws `CheckFailure` on what has none to show. */
export type ContentReader = {
  request(body: JsonObject, reading: Reading): GuardedText[]
  reply(body: JsonObject, reading: Reading): GuardedText[]
  /** Reports the texts of an event in its order; one without text only marks its element as present. */
  event(event: JsonObject, found: (piece: StreamPiece) => void, reading: Reading): void
  /** Between the parts of an element in a stream. */
  readonly separator: string
  /** JSON text that stands for no echo. */
  readonly emptyLogprobs: string
  /** A part of a request without any text is refused by providers, so it is taken out. */
  readonly dropsEmptied: boolean
}

/** A text as guards see it. */
export function joinedText({ parts, separator }: GuardedText): string {
  const [first, ...rest] = parts
  if (first === undefined) return ''
  return rest.length === 0 ? first.text : parts.map(({ text }) => text).join(separator)
}

/** The place of log probabilities, which name every token of a text, if there are some. */
export function logprobsPath(value: JsonObject, path: JsonPath): JsonPath | undefined {
  const { logprobs } = value
  const isThere = Array.isArray(logprobs) ? logprobs.length > 0 : isJsonObject(logprobs)
  return isThere ? [...path, 'logprobs'] : undefined
}

/** The items of a list that are objects, with their indexes. */
export function objectsIn(list: JsonValue | undefined): [index: number, item: JsonObject][] {
  if (!Array.isArray(list)) return []
  const found: [number, JsonObject][] = []
  for (const [index, item] of list.entries()) {
    if (typeof item === 'object' && item !== null && !Array.isArray(item)) found.push([index, item])
  }
  return found
}

/** As `objectsIn`, of a list that is shown to guards as a whole. Throws `CheckFailure` where that cannot be. */
export function readableObjectsIn(list: JsonValue | undefined): [index: number, item: JsonObject][] {
  if (list === undefined || list === null) return []
  const found = objectsIn(list)
  if (!Array.isArray(list) || found.length < list.length) throw new CheckFailure('a list that cannot be read')
  return found
}

export function stringOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** The number an upstream gives an element, or its position where it gives none. */
export function numberOf(value: JsonValue | undefined, position: number): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : position
}

/** What has to change in a body so that its texts become `contents`. Only what differs is touched. */
export function splicesFor(
  texts: readonly GuardedText[],
  contents: readonly string[],
  { dropsEmptied, emptyLogprobs: noEcho }: Pick<ContentReader, 'dropsEmptied' | 'emptyLogprobs'>,
): JsonSplice[] {
  const splices: JsonSplice[] = []
  for (const [index, text] of texts.entries()) {
    const content = contents[index]
    if (content === undefined || content === joinedText(text)) continue
    const { parts, separator } = text
    const written = writeBack(
      parts.map((part) => part.text),
      separator,
      content,
    )
    if (written === undefined) throw new CheckFailure('text where there is none')
    const keepsSome = written.some((part) => part !== '')
    for (const [position, part] of parts.entries()) {
      if (part.logprobs !== undefined) splices.push({ kind: 'set', path: part.logprobs, json: noEcho })
      const now = written[position] ?? ''
      if (now === part.text) continue
      const isDropped = now === '' && dropsEmptied && keepsSome && part.isWhole === true
      if (isDropped) splices.push({ kind: 'remove', path: part.path.slice(0, -1) })
      else splices.push({ kind: 'set', path: part.path, json: JSON.stringify(now) })
    }
  }
  return splices
}
