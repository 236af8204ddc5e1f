import { type Body, isSource } from '../../net/http/body.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { callerOf } from '../../upstream/credentials/caller.ts'
import type { Authorize } from '../../upstream/credentials/credentials.ts'
import type { Destination } from '../../upstream/destination.ts'
import { copyBody } from './buffered-body.ts'
import { requestTo } from './forward.ts'

/** Copies requests to other destinations. */
export type Mirror = (exchange: Exchange, body: Body) => Copies

/** Copies of one request, as it was at their creation. */
export type Copies = {
  /** The body to forward, with unchanged content. */
  readonly body: Body
  /** Sends the copies once the body has been read. Called for requests that were permitted to go upstream. */
  release(): void
}

/** A receiver of copies. */
export type MirrorTarget = {
  /** Undefined while the backend has no endpoints. */
  choose(): Destination | undefined
  /** Share of the requests, from 0 to 1. */
  share: number
}

export type MirrorOptions = {
  targets: readonly MirrorTarget[]
  random: () => number
  send: Send
  /** Headers that copies do not have, in lower case. */
  withheld?: readonly string[] | undefined
  /** Authentication to the backends of the requests: copies have none of the tokens that it exchanges. */
  auths?: readonly Authorize[] | undefined
}

/** Limit on active copies per target of a route; further requests are not copied. */
const maxActive = 100
const maxBodyBytes = 64 * 1024
/** Response bytes read to reuse the connection. */
const maxResponseBytes = 1024 * 1024
const timeLimitMs = 10_000

/** Creates a mirror. Copies run in the background, and their results are ignored. */
export function createMirror({ targets, random, send, withheld = [], auths = [] }: MirrorOptions): Mirror {
  const receivers = targets.map(({ choose, share }) => ({ choose, share, active: 0 }))
  type Receiver = (typeof receivers)[number]

  function sendCopy(receiver: Receiver, exchange: Exchange, body: Uint8Array | undefined): void {
    if (receiver.active >= maxActive) return
    const destination = receiver.choose()
    if (destination === undefined) return
    receiver.active += 1
    const over = () => {
      receiver.active -= 1
    }
    const request = requestTo(destination, exchange, body)
    // A copy outlives its request and has no receiver of informational responses.
    delete request.cancellation
    for (const name of withheld) delete request.headers[name]
    for (const { strip } of auths) strip?.(request, callerOf(exchange))
    request.onInformational = undefined
    request.firstByteTimeoutMs = destination.requestTimeoutMs ?? timeLimitMs
    request.idleTimeoutMs = timeLimitMs
    sendAuthorized(request, destination.authorize).then((reply) => discard(reply, over), over)

    async function sendAuthorized(copy: OutgoingRequest, authorize: Destination['authorize']) {
      const authorizing = authorize?.apply(copy, callerOf(exchange))
      if (authorizing) await authorizing
      return send(copy)
    }
  }

  return (exchange, body) => {
    const chosen =
      exchange.upgrade === undefined
        ? receivers.filter(({ active, share }) => active < maxActive && (share >= 1 || random() < share))
        : []
    if (chosen.length === 0) return { body, release() {} }
    const gate = createGate((copy) => {
      for (const receiver of chosen) sendCopy(receiver, exchange, copy)
    })
    if (isSource(body)) return { body: copyBody(body, maxBodyBytes, gate.complete), release: gate.release }
    if (body === undefined || body.byteLength <= maxBodyBytes) gate.complete(body)
    return { body, release: gate.release }
  }
}

/** A gate for one copy: sends it once it is complete and released, in either order. */
type Gate = { complete(copy: Uint8Array | undefined): void; release(): void }

function createGate(send: (copy: Uint8Array | undefined) => void): Gate {
  let state: { kind: 'closed' | 'released' | 'sent' } | { kind: 'complete'; copy: Uint8Array | undefined } = {
    kind: 'closed',
  }
  return {
    complete(copy) {
      if (state.kind === 'closed') state = { kind: 'complete', copy }
      else if (state.kind === 'released') {
        state = { kind: 'sent' }
        send(copy)
      }
    },
    release() {
      if (state.kind === 'closed') state = { kind: 'released' }
      else if (state.kind === 'complete') {
        const { copy } = state
        state = { kind: 'sent' }
        send(copy)
      }
    },
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
