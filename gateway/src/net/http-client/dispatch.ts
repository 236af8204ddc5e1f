import type { Dispatcher } from 'undici'
import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { egressRefused } from '../egress/egress.ts'
import { type BodySource, isSource } from '../http/body.ts'
import type { Headers } from '../http/headers.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import type { Upstream } from './pools.ts'
import { requestStream } from './request-stream.ts'
import type { OutgoingRequest, Reply } from './send.ts'
import { createUpstreamBody, type UpstreamBody } from './upstream-body.ts'

export type DispatchLimits = {
  /** Defaults of the limits a request may set itself. */
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Instruments of calls under way. */
  readonly calls: AdmissionMeter
}

/** Informational responses (1xx) of one call. Servers send one or two, or some while they work. */
const maxInformational = 100

/** How often one call may meet connections whose server wants no more calls on them. */
const maxTurnedAway = 5

/** RFC 9110 section 9.2.2: asking twice means no more than asking once. */
const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** Makes one request on a connection of the pool; resolves and rejects as `Send` says. */
export function dispatch(
  upstream: Upstream,
  request: OutgoingRequest,
  limits: DispatchLimits,
): Promise<Reply> {
  if (upstream.calls >= upstream.maxCalls) {
    limits.calls.refused()
    const message = 'upstream call failed: too many calls to this upstream are under way'
    return Promise.reject(new GatewayError('upstream_connect', message))
  }
  upstream.calls += 1
  limits.calls.changed(1)
  return new Promise((resolve, reject) => {
    const { body, cancellation, firstByteTimeoutMs, acceptsWhole, method, onInformational } = request
    const mayRepeat = request.repeatable === true || idempotentMethods.has(method)
    const stream = typeof body === 'object' && isSource(body) ? requestStream(body) : undefined
    let controller: Dispatcher.DispatchController | undefined
    let reply: UpstreamBody | undefined
    /** The head is there, and whoever asked has not heard of it yet. */
    let unheard: Reply | undefined
    let done = false
    /** The library has the call in its queue, from which it cannot be removed. */
    let queued = true
    let informational = 0
    let repeated = false
    let turnedAway = 0
    let connectsBefore = upstream.connects

    const options: Dispatcher.DispatchOptions & { servername?: string } = {
      path: request.path,
      method: method as Dispatcher.HttpMethod,
      headers: request.headers,
      body: stream ?? (body as Exclude<typeof body, BodySource>) ?? null,
      headersTimeout: firstByteTimeoutMs === undefined ? limits.firstByteTimeoutMs : 0,
      bodyTimeout: request.idleTimeoutMs ?? limits.idleTimeoutMs,
    }
    if (upstream.serverName !== undefined) options.servername = upstream.serverName
    if (request.upgrade !== undefined) options.upgrade = request.upgrade

    // The library's limit counts from the moment the request is on a connection; a limit that was asked for
    // counts all.
    const timer =
      firstByteTimeoutMs === undefined
        ? undefined
        : setTimeout(
            () => giveUp(new GatewayError('upstream_timeout', 'upstream call timeout')),
            Math.min(firstByteTimeoutMs, longestTimerMs),
          )

    cancellation?.onCancel(() => {
      giveUp(new GatewayError('request_aborted', 'the client closed the connection'))
    })

    function giveUp(error: GatewayError) {
      if (done) return
      settle(error)
      controller?.abort(error)
    }

    /**
     * The call is over. Called once. In the queue it counts on, without its body, until the library begins or
     * drops it.
     */
    function finish() {
      done = true
      if (queued) options.body = null
      else release()
    }

    function release() {
      upstream.calls -= 1
      limits.calls.changed(-1)
    }

    /** Returns true if the call is over already. */
    function leaveQueue(): boolean {
      const wasQueued = queued
      queued = false
      if (wasQueued && done) release()
      return done
    }

    function settle(error: GatewayError) {
      finish()
      clearTimeout(timer)
      stream?.destroy()
      if (reply === undefined) reject(error)
      else if (unheard === undefined) reply.fail(error)
      else {
        unheard = undefined
        reject(error)
      }
    }

    function hear() {
      if (unheard === undefined) return
      const heard = unheard
      unheard = undefined
      resolve(heard)
    }

    /**
     * A server may close a connection it kept at the moment it is used again (RFC 9112 section 9.3.1): what
     * can be asked twice is, once, unless a connection was made since, which may have been the one that
     * broke.
     */
    function isLateClose(): boolean {
      return (
        controller !== undefined &&
        reply === undefined &&
        !repeated &&
        stream === undefined &&
        upstream.connects === connectsBefore &&
        mayRepeat
      )
    }

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started
        if (leaveQueue())
          started.abort(new GatewayError('request_aborted', 'the client closed the connection'))
      },
      onResponseStart(started, status, headers) {
        if (done) return
        if (status < 200) {
          informational += 1
          if (informational > maxInformational) {
            giveUp(new GatewayError('upstream_invalid', 'the upstream sent too many informational responses'))
            return
          }
          onInformational?.(status, headers as Headers)
          return
        }
        clearTimeout(timer)
        reply = createUpstreamBody(started, () => {
          if (!done) finish()
          stream?.destroy()
        })
        const answer = { status, headers: headers as Headers, body: reply }
        // An answer to HEAD has the length of a body it does not have, so it cannot have one at hand.
        if (acceptsWhole !== true || method === 'HEAD') {
          resolve(answer)
          return
        }
        // What came in one piece is read to its end before the promise can be heard of.
        unheard = answer
        queueMicrotask(hear)
      },
      onResponseData(_, chunk) {
        reply?.write(chunk)
      },
      onResponseEnd(_, trailers) {
        if (done) return
        finish()
        stream?.destroy()
        reply?.end(fieldsOf(trailers))
        if (unheard === undefined) return
        const whole = reply?.whole()
        if (whole !== undefined) unheard.body = whole.byteLength === 0 ? undefined : whole
        hear()
      },
      onRequestUpgrade(_, status, headers, socket) {
        clearTimeout(timer)
        if (done) {
          socket.destroy()
          return
        }
        finish()
        resolve({ status, headers: headers as Headers, body: undefined, tunnel: socket })
      },
      onResponseError(_, error) {
        if (leaveQueue()) return
        if (isLateClose() && isReset(error)) {
          repeated = true
          ask()
          return
        }
        // Whatever was asked, the server has not looked at it (RFC 9113 section 6.8). The library repeats it
        // once, and a busy server may have said so on the next connection too.
        if (
          reply === undefined &&
          stream === undefined &&
          isTurnedAway(error) &&
          turnedAway < maxTurnedAway
        ) {
          turnedAway += 1
          ask()
          return
        }
        settle(upstreamError(error, controller !== undefined))
      },
    }
    upstream.pool.dispatch(options, handler)

    function ask() {
      controller = undefined
      queued = true
      connectsBefore = upstream.connects
      upstream.pool.dispatch(options, handler)
    }
  })
}

function fieldsOf(trailers: object): Headers | undefined {
  for (const _ in trailers) return trailers as Headers
  return undefined
}

function upstreamError(cause: unknown, connected: boolean): GatewayError {
  if (cause instanceof GatewayError) return cause
  switch (errorCode(cause)) {
    case 'UND_ERR_HEADERS_TIMEOUT':
      return new GatewayError('upstream_timeout', 'upstream call timeout', { cause })
    case 'UND_ERR_BODY_TIMEOUT':
      return new GatewayError('upstream_timeout', 'upstream stopped sending', { cause })
    case 'UND_ERR_HEADERS_OVERFLOW':
      return new GatewayError('upstream_too_large', 'response head is too large', { cause })
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
    case 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH':
      return new GatewayError('bad_request', 'the request cannot be forwarded', { cause })
    case egressRefused:
      return new GatewayError('upstream_connect', 'upstream call failed: destination refused', { cause })
    default:
      return connected
        ? new GatewayError('upstream_reset', 'upstream call failed: connection closed', { cause })
        : new GatewayError('upstream_connect', 'upstream call failed: connect', { cause })
  }
}

function isReset(error: unknown): boolean {
  const code = errorCode(error)
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE'
}

/** The library has no code for it. */
function isTurnedAway(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('HTTP/2: "GOAWAY"')
}

function errorCode(cause: unknown): unknown {
  return typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
}
