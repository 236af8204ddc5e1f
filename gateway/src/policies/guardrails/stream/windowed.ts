import { formatSseEvent } from '../../../net/http/sse.ts'
import { writeBack } from '../content/text-change.ts'
import type { Content } from '../view.ts'
import type { DeliveredStream } from './guarded-stream.ts'
import { createWindow, type WindowText } from './window.ts'
import { createWindowInput } from './window-input.ts'

/** Characters of new text per check. */
const windowCharacters = 1024
/** Maximum size of buffered events without text before the reply starts. */
const maxIdleBytes = 4 * 1024
/** Maximum size of buffered events without text after checked text that may continue. */
const maxQuietBytes = 32 * 1024
/** Size of events after which any new text is checked: a few characters take some hundred bytes. */
const maxWindowBytes = 128 * 1024
/** Maximum size of events received during a check before the upstream is paused. */
const maxPendingBytes = 64 * 1024

type WindowState = 'collecting' | 'checking' | 'over'

/**
 * Checks a stream in windows and sends each after its check. The end of a window is buffered and checked
 * again with the next one, so that matches across the border are found before any part of them is sent.
 */
export function windowStream(stream: DeliveredStream): void {
  const { reader, source, check, maxBufferedBytes, delivery, onRejected } = stream
  const window = createWindow(reader.emptyLogprobs)
  const input = createWindowInput(stream, window)
  let state: WindowState = 'collecting'
  /** Size of events added since the last check, without the overlap, whose events may be large. */
  let newBytes = 0
  let isComplete = false
  let isPaused = false
  let isAccepted = true

  function proceed(): void {
    if (state !== 'collecting') return
    const { events, bytes } = input.drain()
    window.append(events)
    newBytes += bytes
    if (window.bytes > maxBufferedBytes) input.invalidate()
    if (isCheckDue()) {
      void checkWindow()
      return
    }
    if (input.newCharacters > 0) return
    if (isReleaseDue()) release('all')
    if (isComplete) finish()
  }

  function isCheckDue(): boolean {
    if (input.needsCheck) return true
    if (input.newCharacters === 0) return false
    return isComplete || input.newCharacters >= windowCharacters || newBytes > maxWindowBytes
  }

  function isReleaseDue(): boolean {
    if (isComplete || newBytes > maxQuietBytes) return true
    return !window.hasText && (delivery.isOpen || window.bytes > maxIdleBytes)
  }

  async function checkWindow(): Promise<void> {
    state = 'checking'
    newBytes = 0
    const isReadable = input.startCheck()
    const isLast = isComplete || !isReadable
    try {
      const texts = window.texts()
      const outcome = await check(isReadable ? contentsOf(texts, stream) : undefined)
      if (outcome.kind === 'rejected') {
        state = 'over'
        source.cancel()
        onRejected(outcome.guard)
        delivery.refuse(outcome.rejection)
        return
      }
      if (outcome.kind === 'changed') replaceTexts(texts, outcome.contents, reader.separator)
      release(isLast ? 'all' : 'checked')
    } catch (error) {
      state = 'over'
      source.cancel()
      delivery.fail(error)
      return
    }
    endCheck()
    // The guards fail open for unreadable content; later content is checked again.
    if (!isReadable) input.revalidate()
    proceed()
    resume()
  }

  /** The stream may have failed during the check. */
  function endCheck(): void {
    if (state === 'checking') state = 'collecting'
  }

  function release(events: 'all' | 'checked'): void {
    if (events === 'all') newBytes = 0
    let text = ''
    for (const event of window.release(events)) text += formatSseEvent(event)
    if (text !== '') isAccepted = delivery.write(Buffer.from(text))
  }

  function finish(): void {
    state = 'over'
    delivery.end()
  }

  function resume(): void {
    if (!isPaused || state !== 'collecting') return
    isPaused = false
    // Otherwise the client resumes the source.
    if (isAccepted) source.resume()
  }

  source.start({
    write(chunk) {
      if (state === 'over') return true
      isAccepted = true
      input.push(chunk)
      proceed()
      if (state === 'checking' && input.pendingBytes > maxPendingBytes) isPaused = true
      return isAccepted && !isPaused
    },
    end() {
      isComplete = true
      proceed()
    },
    fail(error) {
      state = 'over'
      delivery.fail(error)
    },
  })
}

function contentsOf(texts: readonly WindowText[], { reader, reading }: DeliveredStream): Content[] {
  return texts.map(({ parts, scope = 'messages' }) => ({
    role: 'assistant',
    content: parts.map(({ text }) => text).join(reader.separator),
    fixed: parts.every(({ text }) => text === ''),
    ...(reading.scopes === undefined ? {} : { scope, isJson: parts[0]?.isJson }),
  }))
}

function replaceTexts(texts: readonly WindowText[], contents: readonly string[], separator: string): void {
  for (const [index, { parts }] of texts.entries()) {
    const before = parts.map(({ text }) => text)
    const after = contents[index] ?? before.join(separator)
    const written = writeBack(before, separator, after) ?? before
    for (const [position, part] of parts.entries()) part.replaceWith(written[position] ?? '')
  }
}
