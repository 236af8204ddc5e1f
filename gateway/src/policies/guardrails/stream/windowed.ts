import { createSseParser, formatSseEvent, type SseEvent } from '../../../net/http/sse.ts'
import type { StreamPiece } from '../content/content-reader.ts'
import type { Reading } from '../content/reading.ts'
import { writeBack } from '../content/text-change.ts'
import type { Content } from '../run.ts'
import type { DeliveredStream } from './guarded-stream.ts'
import { createEventReader } from './read-event.ts'
import { createWindow, type EventPiece, type WindowEvent, type WindowText } from './window.ts'

/** New text that is checked together. */
const windowCharacters = 1024
/** Events without text are not held for long. */
const maxIdleBytes = 4 * 1024
/** Events without text that stand behind checked text are held no longer than this, though the text may go on. */
const maxQuietBytes = 32 * 1024
/** After so many bytes of events text is checked, however little it is: a few characters take some hundred bytes. */
const maxWindowBytes = 128 * 1024
/** An event that is larger than what may be held fails its check, but is still taken as one, because it may pass all the same. */
const maxSpareBytes = 2 * 1024 * 1024
/** While a check is under way, so much more is taken from the upstream. */
const maxWaitingBytes = 64 * 1024

/**
 * Checks a stream in windows and passes each on when it is checked. The end of a window is held and checked once more
 * together with the next one, so that what stands across their border is found before any of it was sent.
 */
export function windowStream({
  reader,
  reading,
  source,
  check,
  maxBufferedBytes: maxHeldBytes,
  delivery,
  onRejected,
}: DeliveredStream): void {
  const window = createWindow(reader.emptyLogprobs)
  /** Content of unknown type is checked at once, though no text may come with it. */
  let unknown: 'none' | 'waiting' | 'checked' = 'none'
  const noting: Reading = {
    ...reading,
    reportUnknown(type) {
      if (unknown === 'none') unknown = 'waiting'
      reading.reportUnknown(type)
    },
  }
  const read = createEventReader(reader, noting)
  let waiting: WindowEvent[] = []
  let waitingBytes = 0
  let newCharacters = 0
  /** Of events that came into the window since the last check. The overlap does not count: its events may be large. */
  let newBytes = 0
  let isChecking = false
  let isComplete = false
  let isOver = false
  let isReadable = true
  let isPaused = false
  let isAccepted = true
  const parser = createSseParser({
    maxEventBytes: maxHeldBytes + maxSpareBytes,
    onEvent: take,
    onError: () => take({ data: '' }),
  })

  /** Of the event that is being read. Made with its first piece: an array that grows has room for many, and most have one. */
  let pieces: EventPiece[] = []

  function takePiece(piece: StreamPiece): void {
    if (piece.text === '' && piece.logprobs === undefined) return
    const held = window.add(piece)
    if (held.kind === 'text') newCharacters += piece.text.length
    if (pieces.length === 0) pieces = [held]
    else pieces.push(held)
  }

  function take(event: SseEvent): void {
    pieces = []
    if (isReadable) {
      try {
        read(event, takePiece)
      } catch {
        isReadable = false
      }
    }
    const bytes = event.data.length + 32
    waiting.push({ event, pieces, bytes })
    waitingBytes += bytes
  }

  function proceed(): void {
    if (isOver || isChecking) return
    window.append(waiting)
    newBytes += waitingBytes
    waiting = []
    waitingBytes = 0
    if (window.bytes > maxHeldBytes) isReadable = false
    if (!isReadable || unknown === 'waiting') {
      void checkNow()
      return
    }
    if (newCharacters > 0) {
      if (isComplete || newCharacters >= windowCharacters || newBytes > maxWindowBytes) void checkNow()
      return
    }
    if (isComplete || newBytes > maxQuietBytes) release('all')
    else if (!window.hasText && (delivery.isOpen || window.bytes > maxIdleBytes)) release('all')
    if (isComplete) finish()
  }

  async function checkNow(): Promise<void> {
    isChecking = true
    if (unknown === 'waiting') unknown = 'checked'
    newCharacters = 0
    newBytes = 0
    const wasReadable = isReadable
    const isLast = isComplete || !wasReadable
    try {
      const texts = window.texts()
      const outcome = await check(wasReadable ? contentsOf(texts) : undefined)
      if (outcome.kind === 'rejected') {
        isOver = true
        source.cancel()
        onRejected(outcome.guard)
        delivery.refuse(outcome.rejection)
        return
      }
      if (outcome.kind === 'changed') change(texts, outcome.contents)
      release(isLast ? 'all' : 'checked')
    } catch (error) {
      isOver = true
      source.cancel()
      delivery.fail(error)
      return
    }
    isChecking = false
    // What nobody could read has passed, because the guards fail open; what follows is checked again.
    if (!wasReadable) isReadable = true
    proceed()
    resume()
  }

  function contentsOf(texts: readonly WindowText[]): Content[] {
    return texts.map(({ parts }) => ({
      role: 'assistant',
      content: parts.map(({ text }) => text).join(reader.separator),
      fixed: parts.every(({ text }) => text === ''),
    }))
  }

  function change(texts: readonly WindowText[], contents: readonly string[]): void {
    for (const [index, { parts }] of texts.entries()) {
      const before = parts.map(({ text }) => text)
      const after = contents[index] ?? before.join(reader.separator)
      const written = writeBack(before, reader.separator, after) ?? before
      for (const [position, part] of parts.entries()) part.replaceWith(written[position] ?? '')
    }
  }

  function release(which: 'all' | 'checked'): void {
    if (which === 'all') newBytes = 0
    let text = ''
    for (const event of window.release(which)) text += formatSseEvent(event)
    if (text !== '') isAccepted = delivery.write(Buffer.from(text))
  }

  function finish(): void {
    isOver = true
    delivery.end()
  }

  function resume(): void {
    if (!isPaused || isOver || isChecking) return
    isPaused = false
    // Else the client resumes it.
    if (isAccepted) source.resume()
  }

  source.start({
    write(chunk) {
      if (isOver) return true
      isAccepted = true
      parser.push(chunk)
      proceed()
      if (isChecking && waitingBytes > maxWaitingBytes) isPaused = true
      return isAccepted && !isPaused
    },
    end() {
      isComplete = true
      proceed()
    },
    fail(error) {
      isOver = true
      delivery.fail(error)
    },
  })
}
