import { GatewayError } from '../../../lib/gateway-error.ts'
import { asError } from '../../../lib/thrown.ts'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Rejection } from '../guard.ts'

/** A streamed answer on its way to the client, of which nothing has been sent as long as nobody says so. */
export type Delivery = {
  /** Comes with the first byte, or with the rejection in its place. */
  readonly reply: Promise<Reply>
  /** Whether the client has been told the status. */
  readonly isOpen: boolean
  /** Sends whole events. False when the client is slow: `onResume` says when it is not any more. */
  write(bytes: Uint8Array): boolean
  /** As `write`, for bytes that are no whole events: silence stays silent from here on. */
  writeRaw(bytes: Uint8Array): boolean
  end(): void
  /** Sends a rejection in place of the answer: its own status while nothing was sent, an event that ends the stream after that. */
  refuse(rejection: Rejection): void
  fail(error: unknown): void
}

export type DeliveryOptions = {
  head: Pick<Reply, 'status' | 'headers'>
  refusal(rejection: Rejection): Reply
  refusalEvent(rejection: Rejection): string
  onResume(): void
  /** The client does not want the rest. */
  onCancel(): void
  onGone(listener: () => void): void
}

/** Decisions 8: so long a verdict keeps its status, and connections stay alive without a byte. */
const silenceMs = 15_000

const comment = Buffer.from(':\n\n')

export function createDelivery(options: DeliveryOptions): Delivery {
  const { promise: reply, resolve, reject } = Promise.withResolvers<Reply>()
  let sink: BodySink | undefined
  let queue: Uint8Array[] = []
  let isOpen = false
  let isBlocked = false
  let isOver = false
  let failure: Error | undefined
  let timer: NodeJS.Timeout | undefined
  listenForSilence()
  options.onGone(() => {
    stop()
    reject(new GatewayError('request_aborted', 'the client closed the connection'))
  })

  const body: BodySource = {
    start(to) {
      sink = to
      if (failure === undefined) flush()
      else to.fail(failure)
    },
    resume() {
      isBlocked = false
      flush()
      if (!isBlocked && !isOver) options.onResume()
    },
    cancel() {
      stop()
      options.onCancel()
    },
  }

  function listenForSilence(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      // Who has not read the last of it does not need more.
      if (queue.length === 0) push(comment)
      listenForSilence()
    }, silenceMs)
  }

  function stop(): void {
    clearTimeout(timer)
    isOver = true
    queue = []
  }

  function open(): void {
    if (isOpen) return
    isOpen = true
    resolve({ ...options.head, body })
  }

  function push(bytes: Uint8Array): void {
    open()
    queue.push(bytes)
    flush()
  }

  let isEnding = false

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

  function end(): void {
    clearTimeout(timer)
    open()
    isEnding = true
    flush()
  }

  return {
    reply,
    get isOpen() {
      return isOpen
    },
    write(bytes) {
      if (isOver) return true
      listenForSilence()
      push(bytes)
      return !isBlocked
    },
    writeRaw(bytes) {
      if (isOver) return true
      clearTimeout(timer)
      push(bytes)
      return !isBlocked
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
      failure = asError(error)
      if (isOpen) sink?.fail(failure)
      else reject(failure)
    },
  }
}
