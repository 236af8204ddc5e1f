import type { Message, MessageSink, TargetFailure } from '../message/message.ts'

/** A sink that may be full, with the messages that wait for it. */
export type BufferedSink = {
  push(message: Message): void
  /** Ends the sink once everything before has been delivered. */
  end(): void
  /** As `end`, with a failure. */
  fail(failure: TargetFailure): void
  /** Takes the sink for full until `resume`. */
  block(): void
  /** The sink has room again. */
  resume(): void
  /** Drops what waits; the sink hears nothing more. */
  cancel(): void
}

/**
 * Holds messages back while the sink is full, because one stream from the target feeds many sinks and one slow reader
 * must not hold up the others at once. `onBuffered` is told by how many characters the amount held has changed.
 */
export function createBufferedSink(sink: MessageSink, onBuffered: (change: number) => void): BufferedSink {
  let waiting: Message[] = []
  let full = false
  let closing: (() => void) | undefined
  let closed = false

  return {
    push(message) {
      if (closed || closing) return
      if (full) {
        waiting.push(message)
        onBuffered(message.text.length)
      } else full = !sink.message(message)
    },
    end: () => closeWith(() => sink.end()),
    fail: (failure) => closeWith(() => sink.fail(failure)),
    block() {
      full = true
    },
    resume() {
      full = false
      flush()
    },
    cancel() {
      closed = true
      for (const message of waiting) onBuffered(-message.text.length)
      waiting = []
    },
  }

  function closeWith(close: () => void): void {
    if (closed || closing) return
    closing = close
    flush()
  }

  function flush(): void {
    while (!closed && !full) {
      const next = waiting.shift()
      if (next === undefined) break
      onBuffered(-next.text.length)
      full = !sink.message(next)
    }
    if (closed || closing === undefined || waiting.length > 0) return
    closed = true
    closing()
  }
}
