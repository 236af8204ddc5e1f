import type { Message, MessageSink, TargetFailure } from '../message/message.ts'

/** A sink with a queue for messages beyond its capacity. */
export type BufferedSink = {
  push(message: Message): void
  /** Ends the sink after delivery of queued messages. */
  end(): void
  /** Like `end`, with a failure. */
  fail(failure: TargetFailure): void
  /** Queues messages until `resume`. */
  block(): void
  /** Continues delivery to the sink. */
  resume(): void
  /** Drops queued messages and stops delivery. */
  cancel(): void
}

/**
 * Queues messages while the sink is at capacity, because one stream of the target serves many sinks and a
 * slow reader must not block others. `onBuffered` receives changes of the queue size in characters.
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
