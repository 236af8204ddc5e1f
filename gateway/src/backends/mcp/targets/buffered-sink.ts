import type { Message, MessageSink, TargetFailure } from '../message/message.ts'

/** A sink that may be full, with the messages that wait for it. */
export type Outlet = {
  push(message: Message): void
  /** Ends the sink once everything before has been delivered. */
  end(): void
  /** As `end`, with a failure. */
  fail(failure: TargetFailure): void
  /** Takes the sink for full until `resume`. */
  hold(): void
  /** The sink has room again. */
  resume(): void
  /** Drops what waits; the sink hears nothing more. */
  cancel(): void
}

/**
 * Holds messages back while the sink is full, because one stream from the target feeds many sinks and one slow reader
 * must not hold up the others at once. `onHeld` is told by how many characters the amount held has changed.
 */
export function createOutlet(sink: MessageSink, onHeld: (change: number) => void): Outlet {
  let waiting: Message[] = []
  let full = false
  let closing: (() => void) | undefined
  let closed = false

  return {
    push(message) {
      if (closed || closing) return
      if (full) {
        waiting.push(message)
        onHeld(message.text.length)
      } else full = !sink.message(message)
    },
    end: () => closeWith(() => sink.end()),
    fail: (failure) => closeWith(() => sink.fail(failure)),
    hold() {
      full = true
    },
    resume() {
      full = false
      flush()
    },
    cancel() {
      closed = true
      for (const message of waiting) onHeld(-message.text.length)
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
      onHeld(-next.text.length)
      full = !sink.message(next)
    }
    if (closed || closing === undefined || waiting.length > 0) return
    closed = true
    closing()
  }
}
