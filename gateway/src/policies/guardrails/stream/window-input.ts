import { createSseParser, type SseEvent } from '../../../net/http/sse.ts'
import type { StreamPiece } from '../content/content-reader.ts'
import type { Reading } from '../content/reading.ts'
import type { GuardedStream } from './guarded-stream.ts'
import { createEventReader } from './read-event.ts'
import type { EventPiece, Window, WindowEvent } from './window.ts'

/** An event above the buffer limit fails its check but is still parsed, because its guards may fail open. */
const maxExcessBytes = 2 * 1024 * 1024

/** Parsed events that are not yet in the window. */
export type PendingEvents = { events: WindowEvent[]; bytes: number }

/** Parser of a stream for a window. */
export type WindowInput = {
  push(chunk: Uint8Array): void
  readonly pendingBytes: number
  /** Returns and removes the pending events. */
  drain(): PendingEvents
  /** Characters of text since the last check. */
  readonly newCharacters: number
  /**
   * Whether a check is due without new text: for unreadable content, or the first content of unknown type.
   */
  readonly needsCheck: boolean
  /** Starts a check: resets the counts and returns whether the content is readable. */
  startCheck(): boolean
  /** Marks the content as not readable. */
  invalidate(): void
  /** Marks later content as readable, after the guards have let unreadable content pass. */
  revalidate(): void
}

/** Creates the input of `window`. Text pieces are registered with the window during parsing. */
export function createWindowInput(
  { reader, reading, maxBufferedBytes }: GuardedStream,
  window: Window,
): WindowInput {
  let unknownType: 'none' | 'unchecked' | 'checked' = 'none'
  let pending: PendingEvents = { events: [], bytes: 0 }
  let newCharacters = 0
  let isReadable = true
  const recording: Reading = {
    ...reading,
    reportUnknown(type) {
      if (unknownType === 'none') unknownType = 'unchecked'
      reading.reportUnknown(type)
    },
  }
  const read = createEventReader(reader, recording)
  const parser = createSseParser({
    maxEventBytes: maxBufferedBytes + maxExcessBytes,
    onEvent: addEvent,
    onError: () => addEvent({ data: '' }),
  })

  /** Pieces of the current event. Created with the first piece, because most events have one. */
  let pieces: EventPiece[] = []

  function addPiece(piece: StreamPiece): void {
    if (piece.text === '' && piece.logprobs === undefined) return
    const added = window.add(piece)
    if (added.kind === 'text') newCharacters += piece.text.length
    if (pieces.length === 0) pieces = [added]
    else pieces.push(added)
  }

  function addEvent(event: SseEvent): void {
    pieces = []
    if (isReadable) {
      try {
        read(event, addPiece)
      } catch {
        isReadable = false
      }
    }
    const bytes = event.data.length + 32
    pending.events.push({ event, pieces, bytes })
    pending.bytes += bytes
  }

  return {
    push: (chunk) => parser.push(chunk),
    get pendingBytes() {
      return pending.bytes
    },
    drain() {
      const drained = pending
      pending = { events: [], bytes: 0 }
      return drained
    },
    get newCharacters() {
      return newCharacters
    },
    get needsCheck() {
      return !isReadable || unknownType === 'unchecked'
    },
    startCheck() {
      if (unknownType === 'unchecked') unknownType = 'checked'
      newCharacters = 0
      return isReadable
    },
    invalidate() {
      isReadable = false
    },
    revalidate() {
      isReadable = true
    },
  }
}
