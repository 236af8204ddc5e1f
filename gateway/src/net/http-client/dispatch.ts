import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type BodySource, isSource } from '../http/body.ts'
import type { Headers } from '../http/headers.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import type { Upstream } from './http2-upstream.ts'
import { mayRepeat } from './repeatable.ts'
import { requestStream } from './request-stream.ts'
import type { OutgoingRequest, Reply } from './send.ts'
import { createUpstreamBody, type UpstreamBody } from './upstream-body.ts'
import { isRefusedUnprocessed, isReset, upstreamError } from './upstream-error.ts'

export type DispatchLimits = {
  /** Defaults of the limits of a request. */
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Instruments of active calls. */
  readonly calls: AdmissionMeter
}

/** Limit of informational responses (1xx) per call. Servers send one or two, or some as progress. */
const maxInformational = 100

/** Limit of repetitions after connections that the server closed to new requests. */
const maxRefusedUnprocessed = 5

type DispatchOptions = Dispatcher.DispatchOptions & { servername?: string }

/** State of one call. */
type Call = {
  readonly upstream: Upstream
  readonly request: OutgoingRequest
  readonly meter: AdmissionMeter
  readonly options: DispatchOptions
  readonly stream: Readable | undefined
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: GatewayError) => void
  /** Limit of the wait for the response head, if the request sets one. */
  timer: NodeJS.Timeout | undefined
  /**
   * `queued`: in the queue of the library, which has no way to remove it; `started`: on a connection;
   * `abandoned`: over, but still in the queue, and counted; `over`.
   */
  phase: 'queued' | 'started' | 'abandoned' | 'over'
  /** Of the connection; present once the request is on one. */
  controller: Dispatcher.DispatchController | undefined
  /** Of the response; present once its head has arrived. */
  body: UpstreamBody | undefined
  /** A reply that is delivered in the next microtask, or with its complete body. */
  undelivered: Reply | undefined
  informational: number
  hasRepeated: boolean
  refusedUnprocessed: number
  /** Connections of the upstream when the request was queued. */
  connectsBefore: number
}

/** Makes one request on a connection of the pool; resolves and rejects as documented at `Send`. */
export function dispatch(
  upstream: Upstream,
  request: OutgoingRequest,
  limits: DispatchLimits,
): Promise<Reply> {
  if (!upstream.calls.begin()) {
    limits.calls.refused()
    const message = 'upstream call failed: too many calls to this upstream are under way'
    return Promise.reject(new GatewayError('upstream_connect', message))
  }
  limits.calls.changed(1)
  return new Promise((resolve, reject) => {
    const { body, cancellation, firstByteTimeoutMs } = request
    const stream = typeof body === 'object' && isSource(body) ? requestStream(body) : undefined
    const call: Call = {
      upstream,
      request,
      meter: limits.calls,
      options: dispatchOptions(upstream, request, limits, stream),
      stream,
      resolve,
      reject,
      timer: undefined,
      phase: 'queued',
      controller: undefined,
      body: undefined,
      undelivered: undefined,
      informational: 0,
      hasRepeated: false,
      refusedUnprocessed: 0,
      connectsBefore: upstream.connects,
    }
    if (firstByteTimeoutMs !== undefined) {
      const delayMs = Math.min(firstByteTimeoutMs, longestTimerMs)
      call.timer = setTimeout(
        () => abort(call, new GatewayError('upstream_timeout', 'upstream call timeout')),
        delayMs,
      )
    }
    cancellation?.onCancel(() => abort(call, clientClosed()))
    upstream.pool.dispatch(call.options, createHandler(call))
  })
}

function dispatchOptions(
  upstream: Upstream,
  { path, method, headers, body, firstByteTimeoutMs, idleTimeoutMs }: OutgoingRequest,
  limits: DispatchLimits,
  stream: Readable | undefined,
): DispatchOptions {
  const options: DispatchOptions = {
    path,
    method: method as Dispatcher.HttpMethod,
    headers,
    body: stream ?? (body as Exclude<typeof body, BodySource>) ?? null,
    // The limit of the library starts on a connection; the limit of a request includes the queue.
    headersTimeout: firstByteTimeoutMs === undefined ? limits.firstByteTimeoutMs : 0,
    bodyTimeout: idleTimeoutMs ?? limits.idleTimeoutMs,
  }
  if (upstream.serverName !== undefined) options.servername = upstream.serverName
  return options
}

function createHandler(call: Call): Dispatcher.DispatchHandler {
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      call.controller = controller
      if (leaveQueue(call)) controller.abort(clientClosed())
    },
    onResponseStart(controller, status, headers) {
      if (isOver(call)) return
      if (status < 200) receiveInformational(call, status, headers as Headers)
      else receiveHead(call, controller, status, headers as Headers)
    },
    onResponseData(_, chunk) {
      call.body?.write(chunk)
    },
    onResponseEnd(_, trailers) {
      if (!isOver(call)) receiveEnd(call, fieldsOf(trailers))
    },
    onResponseError(_, error) {
      if (leaveQueue(call)) return
      if (shouldRepeat(call, error)) repeat(call, handler)
      else fail(call, upstreamError(error, call.controller !== undefined))
    },
  }
  return handler
}

function receiveInformational(call: Call, status: number, headers: Headers): void {
  call.informational += 1
  if (call.informational > maxInformational) {
    abort(call, new GatewayError('upstream_invalid', 'the upstream sent too many informational responses'))
    return
  }
  call.request.onInformational?.(status, headers)
}

function receiveHead(
  call: Call,
  controller: Dispatcher.DispatchController,
  status: number,
  headers: Headers,
): void {
  clearTimeout(call.timer)
  const body = createUpstreamBody(controller, () => {
    if (!isOver(call)) finish(call)
    call.stream?.destroy()
  })
  call.body = body
  const reply = { status, headers, body }
  // A response to HEAD has the length of a body that it does not contain.
  if (call.request.acceptsWhole !== true || call.request.method === 'HEAD') {
    call.resolve(reply)
    return
  }
  // A response received in one chunk is read to its end before the microtask.
  call.undelivered = reply
  queueMicrotask(() => deliver(call))
}

function receiveEnd(call: Call, trailers: Headers | undefined): void {
  finish(call)
  call.stream?.destroy()
  call.body?.end(trailers)
  if (call.undelivered === undefined) return
  const whole = call.body?.whole()
  if (whole !== undefined) call.undelivered.body = whole.byteLength === 0 ? undefined : whole
  deliver(call)
}

function deliver(call: Call): void {
  const reply = call.undelivered
  if (reply === undefined) return
  call.undelivered = undefined
  call.resolve(reply)
}

function isOver({ phase }: Call): boolean {
  return phase === 'over' || phase === 'abandoned'
}

/** Ends the call, once. A queued call stays counted, without body, until the library starts or drops it. */
function finish(call: Call): void {
  if (call.phase === 'queued') {
    call.phase = 'abandoned'
    call.options.body = null
    return
  }
  call.phase = 'over'
  release(call)
}

function release({ upstream, meter }: Call): void {
  upstream.calls.end()
  meter.changed(-1)
}

/** Returns true if the call is over already. */
function leaveQueue(call: Call): boolean {
  if (call.phase === 'queued') call.phase = 'started'
  else if (call.phase === 'abandoned') {
    call.phase = 'over'
    release(call)
  }
  return call.phase === 'over'
}

function abort(call: Call, error: GatewayError): void {
  if (isOver(call)) return
  fail(call, error)
  call.controller?.abort(error)
}

function fail(call: Call, error: GatewayError): void {
  finish(call)
  clearTimeout(call.timer)
  call.stream?.destroy()
  if (call.body !== undefined && call.undelivered === undefined) {
    call.body.fail(error)
    return
  }
  call.undelivered = undefined
  call.reject(error)
}

/** Decides on a repetition after an error, and counts it. A body that streams cannot be sent twice. */
function shouldRepeat(call: Call, error: unknown): boolean {
  if (call.body !== undefined || call.stream !== undefined) return false
  if (isLateClose(call) && isReset(error)) {
    call.hasRepeated = true
    return true
  }
  // Safe for every method. The library repeats once, but a busy server may refuse on the next connection too.
  if (call.refusedUnprocessed >= maxRefusedUnprocessed || !isRefusedUnprocessed(error)) return false
  call.refusedUnprocessed += 1
  return true
}

/**
 * A server may close a kept-alive connection at the moment of its reuse (RFC 9112 section 9.3.1). A request
 * that may be sent twice is repeated once, unless a connection was opened since: that one may have broken.
 */
function isLateClose({ controller, hasRepeated, upstream, connectsBefore, request }: Call): boolean {
  return (
    controller !== undefined && !hasRepeated && upstream.connects === connectsBefore && mayRepeat(request)
  )
}

function repeat(call: Call, handler: Dispatcher.DispatchHandler): void {
  call.controller = undefined
  call.phase = 'queued'
  call.connectsBefore = call.upstream.connects
  call.upstream.pool.dispatch(call.options, handler)
}

function clientClosed(): GatewayError {
  return new GatewayError('request_aborted', 'the client closed the connection')
}

function fieldsOf(trailers: object): Headers | undefined {
  for (const _ in trailers) return trailers as Headers
  return undefined
}
