import { type Body, isSource } from '../../net/http/body.ts'
import type { Reply, Send } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Destination } from '../../upstream/destination.ts'
import { copyBody } from './buffered-body.ts'
import { requestTo } from './forward.ts'

/** Sends a copy of a request somewhere else. Returns the body to forward, which is the same to its reader. */
export type Mirror = (exchange: Exchange, body: Body) => Body

export type MirrorOptions = {
  destination: Destination
  /** Share of the requests, from 0 to 1. */
  share: number
  random: () => number
  send: Send
}

/** Copies under way at most, for each route; further requests are not copied. */
const maxUnderWay = 100
const maxBodyBytes = 64 * 1024
/** How much of an answer is read so that its connection can be used again. */
const maxAnswerBytes = 1024 * 1024
const timeLimitMs = 10_000

/** Copies are sent and forgotten: nothing waits for them, and what becomes of them changes nothing. */
export function createMirror({ destination, share, random, send }: MirrorOptions): Mirror {
  let underWay = 0

  function over() {
    underWay -= 1
  }

  function sendCopy(exchange: Exchange, body: Uint8Array | undefined): void {
    const request = requestTo(destination, exchange, body)
    // A copy outlives the request it was made of, and nobody hears its hints.
    delete request.cancellation
    request.onInformational = undefined
    request.firstByteTimeoutMs = destination.requestTimeoutMs ?? timeLimitMs
    request.idleTimeoutMs = timeLimitMs
    send(request).then((reply) => discard(reply, over), over)
  }

  return (exchange, body) => {
    if (exchange.upgrade !== undefined || underWay >= maxUnderWay) return body
    if (share < 1 && random() >= share) return body
    if (!isSource(body)) {
      if (body !== undefined && body.byteLength > maxBodyBytes) return body
      underWay += 1
      sendCopy(exchange, body)
      return body
    }
    return copyBody(body, maxBodyBytes, (copy) => {
      if (underWay >= maxUnderWay) return
      underWay += 1
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
      if (size > maxAnswerBytes) {
        body.cancel()
        finish()
      }
      return true
    },
    end: finish,
    fail: finish,
  })
}
