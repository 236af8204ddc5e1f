import { GatewayError } from '../../../lib/gateway-error.ts'
import { asError } from '../../../lib/thrown.ts'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Rejection } from '../guard.ts'

/** Delayed delivery of a streamed response: nothing is sent before the first write, rejection or timeout. */
export type Delivery = {
  /** Resolves with the first byte, or with the reply of a rejection. */
  readonly reply: Promise<Reply>
  /** Whether the status is sent. */
  readonly isOpen: boolean
  /** Sends whole events. Returns false if the client is slow, until `onResume`. */
  write(bytes: Uint8Array): boolean
  /**
   * Sends bytes that need not be whole events. From here on no comments are sent to keep the connection
   * alive.
   */
  writeRaw(bytes: Uint8Array): boolean
  end(): void
  /** Sends a rejection: as the reply before the first byte, as an event that ends the stream after it. */
  refuse(rejection: Rejection): void
  fail(error: unknown): void
}

export type DeliveryOptions = {
  head: Pick<Reply, 'status' | 'headers'>
  refusal(rejection: Rejection): Reply
  refusalEvent(rejection: Rejection): string
  onResume(): void
  /** The client cancels the rest of the body. */
  onCancel(): void
  onGone(listener: () => void): void
}

/** Maximum wait for a verdict before the status is sent, and interval of comments (decision 8). */
const silenceMs = 15_000

const comment = Buffer.from(':\n\n')

export function createDelivery(options: DeliveryOptions): Delivery {
  const { promise: reply, resolve, reject } = Promise.withResolvers<Reply>()
  let isOpen = false
  let isOver = false
  const queue = createBodyQueue({
    onResume() {
      if (!isOver) options.onResume()
    },
    onCancel() {
      stop()
      options.onCancel()
    },
  })
  const silence = createSilenceTimer(() => {
    // A client with unread data needs no comment.
    if (queue.isEmpty) push(comment)
  })
  options.onGone(() => {
    stop()
    reject(new GatewayError('request_aborted', 'the client closed the connection'))
  })

  function stop(): void {
    silence.stop()
    isOver = true
    queue.clear()
  }

  function open(): void {
    if (isOpen) return
    isOpen = true
    resolve({ ...options.head, body: queue.body })
  }

  function push(bytes: Uint8Array): void {
    open()
    queue.push(bytes)
  }

  function end(): void {
    silence.stop()
    open()
    queue.end()
  }

  return {
    reply,
    get isOpen() {
      return isOpen
    },
    write(bytes) {
      if (isOver) return true
      silence.restart()
      push(bytes)
      return !queue.isBlocked
    },
    writeRaw(bytes) {
      if (isOver) return true
      silence.stop()
      push(bytes)
      return !queue.isBlocked
    },
    end() {
      if (!isOver) end()
    },
    refuse(rejection) {
      if (isOver) return
      if (isOpen) {
        push(Buffer.from(options.refusalEvent(rejection)))
        end()
        return
      }
      stop()
      resolve(options.refusal(rejection))
    },
    fail(error) {
      stop()
      const failure = asError(error)
      if (isOpen) queue.fail(failure)
      else reject(failure)
    },
  }
}

type BodyQueue = {
  readonly body: BodySource
  readonly isEmpty: boolean
  /** Whether the sink has returned false and not yet resumed. */
  readonly isBlocked: boolean
  push(bytes: Uint8Array): void
  /** Ends the body after the queued bytes. */
  end(): void
  clear(): void
  fail(error: Error): void
}

/**
 * Queue in front of a body, which may start after the first bytes and respects the backpressure of its sink.
 */
function createBodyQueue({ onResume, onCancel }: { onResume(): void; onCancel(): void }): BodyQueue {
  let sink: BodySink | undefined
  let queue: Uint8Array[] = []
  let isBlocked = false
  let isEnding = false
  let failure: Error | undefined

  function flush(): void {
    if (sink === undefined || isBlocked) return
    while (queue.length > 0 && !isBlocked) {
      const bytes = queue.shift()
      if (bytes !== undefined && !sink.write(bytes)) isBlocked = true
    }
    if (!isEnding || queue.length > 0) return
    isEnding = false
    sink.end()
  }

  return {
    body: {
      start(to) {
        sink = to
        if (failure === undefined) flush()
        else to.fail(failure)
      },
      resume() {
        isBlocked = false
        flush()
        if (!isBlocked) onResume()
      },
      cancel: onCancel,
    },
    get isEmpty() {
      return queue.length === 0
    },
    get isBlocked() {
      return isBlocked
    },
    push(bytes) {
      queue.push(bytes)
      flush()
    },
    end() {
      isEnding = true
      flush()
    },
    clear() {
      queue = []
    },
    fail(error) {
      failure = error
      sink?.fail(error)
    },
  }
}

/** Calls `onSilence` at each interval without a restart, until stopped. */
function createSilenceTimer(onSilence: () => void): { restart(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined

  function restart(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      onSilence()
      restart()
    }, silenceMs)
  }

  restart()
  return { restart, stop: () => clearTimeout(timer) }
}
