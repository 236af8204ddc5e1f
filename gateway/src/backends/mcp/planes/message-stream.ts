import type { JsonObject } from '../../../lib/json/json.ts'
import type { Channel } from '../../../lib/planes/peers.ts'
import type { MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { fromPlainFailure, planeEnded, type StreamMessage, toPlainFailure } from './plain-values.ts'

/** Characters in flight between data planes before the source pauses. */
const windowChars = 256 * 1024

/** Sending half of a stream. */
export type SentStream = {
  readonly sink: MessageSink
  /** Sets the source of the messages, which pauses while the window is full. */
  attach(flow: MessageFlow): void
  /** Adds credit of the receiver. */
  credit(chars: number): void
}

/** Sends the messages of a sink over a channel. The receiver closes the channel after the last message. */
export function sendStream(post: (message: StreamMessage) => void): SentStream {
  let inFlight = 0
  let full = false
  let flow: MessageFlow | undefined
  return {
    sink: {
      message({ text }, mark) {
        inFlight += text.length
        full = inFlight >= windowChars
        post({ kind: 'message', text, mark })
        return !full
      },
      mark: (mark) => post({ kind: 'mark', mark }),
      end: () => post({ kind: 'end' }),
      fail: (failure) => post({ kind: 'fail', failure: toPlainFailure(failure) }),
    },
    attach(attached) {
      flow = attached
    },
    credit(chars) {
      inFlight -= chars
      if (!full || inFlight > windowChars / 2) return
      full = false
      flow?.resume()
    },
  }
}

/** Receiving half of a stream. */
export type ReceivedStream = {
  readonly flow: MessageFlow
  receive(message: StreamMessage): void
  /** Fails the sink because the channel has closed. */
  closed(): void
}

/**
 * Forwards the messages of a channel to a sink. Grants credit while the sink has capacity. `lost` is the
 * failure if the other data plane ends.
 */
export function receiveStream(
  channel: Channel,
  sink: MessageSink,
  lost: TargetFailure = planeEnded,
): ReceivedStream {
  let consumed = 0
  let full = false
  let over = false

  function grant(): void {
    if (over || consumed === 0) return
    const chars = consumed
    consumed = 0
    channel.post({ kind: 'credit', chars } satisfies StreamMessage)
  }

  function finish(last: () => void): void {
    if (over) return
    over = true
    channel.close()
    last()
  }

  return {
    receive(message) {
      if (over) return
      switch (message.kind) {
        case 'message': {
          // The sender has read the text strictly; this is its value.
          const value: JsonObject = JSON.parse(message.text)
          consumed += message.text.length
          full = !sink.message({ text: message.text, value }, message.mark)
          if (!full && consumed >= windowChars / 4) grant()
          return
        }
        case 'mark':
          sink.mark(message.mark)
          return
        case 'end':
          finish(() => sink.end())
          return
        case 'fail': {
          const { failure } = message
          finish(() => sink.fail(fromPlainFailure(failure)))
          return
        }
        case 'credit':
      }
    },
    closed: () => finish(() => sink.fail(lost)),
    flow: {
      resume() {
        if (!full) return
        full = false
        grant()
      },
      cancel() {
        if (over) return
        over = true
        channel.close()
      },
    },
  }
}
