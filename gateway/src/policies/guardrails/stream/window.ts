import { type JsonSplice, spliceJson } from '../../../lib/json/splice.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import type { StreamPiece } from '../content/content-reader.ts'
import type { ContentScope } from '../content/scopes/content-scope.ts'
import { writeBack } from '../content/text-change.ts'
import { setJson, setText } from './read-event.ts'

/** Checked text that remains in the window, because a match may begin in it. */
const overlapCharacters = 256

/** Event in the window and its texts. */
export type WindowEvent = { readonly event: SseEvent; readonly pieces: EventPiece[]; readonly bytes: number }

/** New text of a part, or a repetition of its full text. */
export type EventPiece = Segment | Repeat

type Segment = {
  readonly kind: 'text'
  readonly part: Part
  readonly path: StreamPiece['path']
  readonly echo: StreamPiece['logprobs']
  readonly original: string
  readonly isJson: boolean | undefined
  text: string
  /** Whether its part is modified in the window. */
  isOfChanged: boolean
}

type Repeat = {
  readonly kind: 'repeat'
  readonly part: Part
  readonly path: StreamPiece['path']
  readonly echo: StreamPiece['logprobs']
  readonly text: string
}

/** Incremental text of a stream. */
type Part = {
  readonly element: number
  readonly number: number
  readonly scope: ContentScope | undefined
  /** Full text received, and the length of its released part. */
  received: string
  released: number
  /** Full text sent; undefined while unmodified. */
  sent: string | undefined
}

/** Text in the window of one choice, content block or output item. */
export type WindowText = {
  readonly parts: readonly WindowPart[]
  readonly scope: ContentScope | undefined
}
export type WindowPart = {
  readonly text: string
  readonly isJson: boolean | undefined
  replaceWith(text: string): void
}

export type Window = {
  readonly bytes: number
  /** Whether the window has text. */
  readonly hasText: boolean
  /** Registers text of an event before the event is appended. */
  add(piece: StreamPiece): EventPiece
  append(events: readonly WindowEvent[]): void
  texts(): WindowText[]
  /**
   * Removes and returns events with their modified texts: all, or those before the end that is checked again.
   */
  release(which: 'all' | 'checked'): SseEvent[]
}

/** `emptyLogprobs` is the JSON text for absent log probabilities. */
export function createWindow(emptyLogprobs: string): Window {
  const known = new Map<string, Part>()
  let events: WindowEvent[] = []
  let bufferedBytes = 0
  let others = 0

  /** Part of the previous event, which most events continue. */
  let latest: Part | undefined

  function partOf({ element, part: number, scope }: StreamPiece): Part {
    if (latest?.element === element && latest.number === number) return latest
    const key = `${element} ${number}`
    latest = known.get(key) ?? { element, number, scope, received: '', released: 0, sent: undefined }
    known.set(key, latest)
    return latest
  }

  /** Segments of the current events, cached because a check uses them twice. */
  let byPart: Map<Part, Segment[]> | undefined

  function segmentsByPart(): Map<Part, Segment[]> {
    byPart ??= findSegments()
    return byPart
  }

  function findSegments(): Map<Part, Segment[]> {
    const found = new Map<Part, Segment[]>()
    for (const { pieces } of events) {
      for (const piece of pieces) {
        if (piece.kind !== 'text') continue
        const segments = found.get(piece.part)
        if (segments === undefined) found.set(piece.part, [piece])
        else segments.push(piece)
      }
    }
    return found
  }

  /** Returns the number of leading events without text of the overlap of its part. */
  function countChecked(): number {
    const left = new Map<Part, number>()
    for (const [part, segments] of segmentsByPart()) {
      left.set(
        part,
        segments.reduce((sum, { text }) => sum + text.length, -overlapCharacters),
      )
    }
    for (const [index, { pieces }] of events.entries()) {
      for (const piece of pieces) {
        const rest = (left.get(piece.part) ?? 0) - (piece.kind === 'text' ? piece.text.length : 0)
        // A part is repeated after its end, thus after the overlap.
        if (rest < 0 && left.has(piece.part)) return index
        left.set(piece.part, rest)
      }
    }
    return events.length
  }

  return {
    get bytes() {
      return bufferedBytes
    },
    get hasText() {
      return events.some(({ pieces }) => pieces.length > 0)
    },
    add(piece) {
      const { text, path, logprobs: echo, repeats, scope, isJson } = piece
      const part = partOf(piece)
      if (repeats && text === part.received) return { kind: 'repeat', part, path, echo, text }
      if (repeats) {
        // A text that the stream has not sent before is a part of its own.
        others += 1
        const other: Part = {
          element: Number.MAX_SAFE_INTEGER,
          number: others,
          scope,
          received: text,
          released: 0,
          sent: undefined,
        }
        return { kind: 'text', part: other, path, echo, original: text, isJson, text, isOfChanged: false }
      }
      part.received += text
      return { kind: 'text', part, path, echo, original: text, isJson, text, isOfChanged: false }
    },
    append(added) {
      byPart = undefined
      for (const event of added) {
        events.push(event)
        bufferedBytes += event.bytes
      }
    },
    texts() {
      const elements = new Map<number, { number: number; scope: Part['scope']; part: WindowPart }[]>()
      const alone: WindowText[] = []
      for (const [part, segments] of segmentsByPart()) {
        const { number, scope } = part
        const shown = { number, scope, part: windowPart(segments) }
        if (part.element === Number.MAX_SAFE_INTEGER) alone.push({ parts: [shown.part], scope })
        else elements.set(part.element, [...(elements.get(part.element) ?? []), shown])
      }
      const inOrder = [...elements].sort(([one], [other]) => one - other)
      const together = inOrder.map(([, parts]) => ({
        parts: parts.sort((one, other) => one.number - other.number).map(({ part }) => part),
        scope: parts[0]?.scope,
      }))
      return [...together, ...alone]
    },
    release(which) {
      const count = which === 'all' ? events.length : countChecked()
      byPart = undefined
      const leaving = events.slice(0, count)
      events = events.slice(count)
      for (const { bytes } of leaving) bufferedBytes -= bytes
      return leaving.map((event) => formatEvent(event, emptyLogprobs))
    },
  }
}

function windowPart(segments: readonly Segment[]): WindowPart {
  const pieces = segments.map(({ text }) => text)
  return {
    text: pieces.join(''),
    isJson: segments[0]?.isJson,
    replaceWith(text) {
      const written = writeBack(pieces, '', text) ?? pieces
      const changes = written.some((piece, index) => piece !== pieces[index])
      for (const [index, segment] of segments.entries()) {
        segment.text = written[index] ?? ''
        segment.isOfChanged ||= changes
      }
    },
  }
}

/** Returns the event to send, with its modified texts. */
function formatEvent({ event, pieces }: WindowEvent, emptyLogprobs: string): SseEvent {
  const splices: JsonSplice[] = []
  for (const piece of pieces) {
    const { part, path } = piece
    if (piece.kind === 'repeat') {
      if (part.sent === undefined || part.sent === piece.text) continue
      splices.push(setText(path, part.sent))
      if (piece.echo !== undefined) splices.push(setJson(piece.echo, emptyLogprobs))
      continue
    }
    const { original, text, isJson } = piece
    if (part.sent !== undefined) part.sent += text
    else if (text !== original) part.sent = part.received.slice(0, part.released) + text
    part.released += original.length
    if (text !== original) splices.push(isJson === true ? setJson(path, text) : setText(path, text))
    if (piece.isOfChanged && piece.echo !== undefined) splices.push(setJson(piece.echo, emptyLogprobs))
  }
  return splices.length === 0 ? event : { ...event, data: spliceJson(event.data, splices) }
}
