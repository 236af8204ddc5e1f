import { type Body, isSource } from '../../net/http/body.ts'
import type { Reply, Send } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Destination } from '../../upstream/destination.ts'
import { copyBody } from './buffered-body.ts'
import { requestTo } from './forward.ts'

/** Sends a copy of a request to another destination. Returns the body to forward, with unchanged content. */
export type Mirror = (exchange: Exchange, body: Body) => Body

export type MirrorOptions = {
  destination: Destination
  /** Share of the requests, from 0 to 1. */
  share: number
  random: () => number
  send: Send
}

/** Limit on active copies per route; further requests are not copied. */
const maxActive = 100
const maxBodyBytes = 64 * 1024
/** Response bytes read to reuse the connection. */
const maxResponseBytes = 1024 * 1024
const timeLimitMs = 10_000

/** Creates a mirror. Copies run in the background, and their results are ignored. */
export function createMirror({ destination, share, random, send }: MirrorOptions): Mirror {
  let active = 0

  function over() {
    active -= 1
  }

  function sendCopy(exchange: Exchange, body: Uint8Array | undefined): void {
    const request = requestTo(destination, exchange, body)
    // A copy outlives its request and has no receiver of informational responses.
    delete request.cancellation
    request.onInformational = undefined
    request.firstByteTimeoutMs = destination.requestTimeoutMs ?? timeLimitMs
    request.idleTimeoutMs = timeLimitMs
    send(request).then((reply) => discard(reply, over), over)
  }

  return (exchange, body) => {
    if (exchange.upgrade !== undefined || active >= maxActive) return body
    if (share < 1 && random() >= share) return body
    if (!isSource(body)) {
      if (body !== undefined && body.byteLength > maxBodyBytes) return body
      active += 1
      sendCopy(exchange, body)
      return body
    }
    return copyBody(body, maxBodyBytes, (copy) => {
      if (active >= maxActive) return
      active += 1
      sendCopy(exchange, copy)
    })
  }
}

function discard({ body }: Reply, over: () => void): void {
  if (!isSource(body)) {
    over()
    return
  }
  let size = 0
  let done = false
  function finish() {
    if (done) return
    done = true
    over()
  }
  body.start({
    write(chunk) {
      size += chunk.byteLength
      if (size > maxResponseBytes) {
        body.cancel()
        finish()
      }
      return true
    },
    end: finish,
    fail: finish,
  })
}
