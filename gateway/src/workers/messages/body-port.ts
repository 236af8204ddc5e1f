import type { MessagePort } from 'node:worker_threads'
import { GatewayError } from '../../lib/gateway-error.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { BodySource } from '../../net/http/body.ts'

type FromSender = { kind: 'chunk'; bytes: Uint8Array } | { kind: 'end' } | { kind: 'failed'; message: string }

type FromReceiver = 'start' | 'accepted' | 'cancel'

/** Chunks that are sent and not yet accepted: the source pauses beyond them. */
const window = 8

/** Sends a streaming body to the thread at the other side of a port, with its back pressure. */
export function sendBody(source: BodySource, port: MessagePort): void {
  let waiting = 0
  let isPaused = false
  let isOver = false
  const post = (message: FromSender) => port.postMessage(message)

  function end(message: FromSender): void {
    if (isOver) return
    isOver = true
    post(message)
    port.close()
  }

  function cancel(): void {
    if (isOver) return
    isOver = true
    source.cancel()
    port.close()
  }

  function accepted(): void {
    waiting -= 1
    if (!isPaused || waiting >= window) return
    isPaused = false
    source.resume()
  }

  port.on('message', (message: FromReceiver) => {
    if (isOver) return
    switch (message) {
      case 'start':
        source.start({
          write(bytes) {
            if (isOver) return true
            // A copy: the source may reuse its buffer.
            post({ kind: 'chunk', bytes: Uint8Array.from(bytes) })
            waiting += 1
            isPaused = waiting >= window
            return !isPaused
          },
          end: () => end({ kind: 'end' }),
          fail: (error) => end({ kind: 'failed', message: messageOf(error) }),
        })
        return
      case 'accepted':
        accepted()
        return
      case 'cancel':
        cancel()
    }
  })
  // The other thread has ended.
  port.on('close', cancel)
}

/** Receives the body that `sendBody` sends at the other side of the port. */
export function receiveBody(port: MessagePort): BodySource {
  /** Accepted chunks that are reported with the next `resume`. */
  let unreported = 0
  let isOver = false
  const post = (message: FromReceiver) => port.postMessage(message)

  return {
    start(sink) {
      port.on('message', (message: FromSender) => {
        if (isOver) return
        if (message.kind === 'chunk') {
          if (sink.write(message.bytes)) post('accepted')
          else unreported += 1
          return
        }
        isOver = true
        port.close()
        if (message.kind === 'end') sink.end()
        else sink.fail(new GatewayError('internal', message.message))
      })
      port.on('close', () => {
        if (isOver) return
        isOver = true
        sink.fail(new GatewayError('internal', 'the thread that sends the body has ended'))
      })
      post('start')
    },
    resume() {
      for (; unreported > 0; unreported -= 1) post('accepted')
    },
    cancel() {
      if (isOver) return
      isOver = true
      post('cancel')
      port.close()
    },
  }
}
