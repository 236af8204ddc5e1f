import { validateHeaderName, validateHeaderValue } from 'node:http'
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { createCancellation } from '../../lib/cancellation.ts'
import type { Clock } from '../../lib/clock.ts'
import { type BodySource, isSource } from '../http/body.ts'
import { connectionFields } from '../http/connection-fields.ts'
import type { Headers } from '../http/headers.ts'
import type { Delivery, HttpServerLimits } from '../http/incoming-request.ts'
import { informationalFields, isForwardedInformational } from '../http/informational.ts'
import { acceptsTrailers, allowedTrailers } from '../http/trailers.ts'
import { discard, type Reply } from '../http-client/send.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'
import { readRequestHead } from './request.ts'
import { type RequestBody, requestBody, resetStream } from './request-body.ts'

/** State shared by the streams of one HTTP/2 connection. */
export type Http2Edge = {
  readonly connection: HttpConnection
  readonly clock: Clock
  readonly limits: HttpServerLimits
  /** Meter of active requests. */
  readonly requests: AdmissionMeter
}

const { NGHTTP2_NO_ERROR } = constants

/** Informational responses per request; further ones are dropped. */
const maxHints = 16

/** Handles one request. `lines` are its fields as received: names and values alternate. */
export function handleExchange(stream: ServerHttp2Stream, lines: readonly string[], edge: Http2Edge): void {
  const { clock, limits, requests } = edge
  const { connection, handle, admitted } = edge.connection
  const head = readRequestHead(lines, limits)
  if (head.kind === 'refused') {
    refuse(stream, head.status, head.message)
    return
  }
  const { headers, method, target } = head
  const cancellation = createCancellation()
  const delivery: Delivery = { complete: false, status: undefined, bytesSent: 0, firstByteAt: undefined }
  const body = stream.endAfterHeaders
    ? undefined
    : requestBody(stream, headers, { limitMs: limits.requestTimeoutMs, admitted })
  requests.changed(1)
  const exchange = handle({
    method,
    target,
    version: '2.0',
    headers,
    connection,
    upgrade: undefined,
    informational: hintsOf(stream),
    body: body?.source,
    cancellation,
    startedAt: clock.monotonic(),
  })
  const writing: Writing = {
    stream,
    delivery,
    isHead: method === 'HEAD',
    acceptsTrailers: acceptsTrailers(headers),
  }
  let closed = false
  let replied = false
  let abandon: (() => void) | undefined

  stream.on('close', () => {
    closed = true
    requests.changed(-1)
    // A stream with both halves ended is destroyed before it emits `finish`.
    delivery.complete &&=
      stream.writableLength === 0 && stream.rstCode === NGHTTP2_NO_ERROR && !stream.aborted
    if (!delivery.complete) {
      // Order: abandon the body first, so that the effects of the cancellation cannot reach this response.
      abandon?.()
      cancellation.cancel()
    }
    if (replied) exchange.end(delivery)
  })

  function deliver(reply: Reply) {
    replied = true
    if (closed || stream.closed || stream.destroyed) {
      discard(reply)
      if (closed) exchange.end(delivery)
      return
    }
    if (isSource(reply.body)) abandon = writeStream(writing, reply, reply.body, edge)
    else writeWhole(writing, reply, reply.body, edge)
    if (body) endUnread(stream, body)
  }

  // Invalid heads are rejected on writing. This ends the stream, not the process.
  exchange.reply.then(deliver).catch((error: unknown) => {
    delivery.failure = error
    delivery.complete = false
    if (closed && !replied) exchange.end(delivery)
    replied = true
    if (!closed) resetStream(stream)
  })
}

type Writing = {
  readonly stream: ServerHttp2Stream
  readonly delivery: Delivery
  readonly isHead: boolean
  readonly acceptsTrailers: boolean
}

function writeWhole(
  { stream, delivery, isHead }: Writing,
  reply: Reply,
  body: Uint8Array | undefined,
  { clock, limits }: Http2Edge,
): void {
  const { status } = reply
  const head = outgoingHead(reply)
  if (status !== 204 && status !== 304)
    head['content-length'] = String(body === undefined ? 0 : body.byteLength)
  delivery.status = status
  delivery.firstByteAt = clock.monotonic()
  delivery.complete = true
  if (body === undefined || body.byteLength === 0 || !mayHaveBody(isHead, status)) {
    stream.respond(head, { endStream: true })
    return
  }
  stream.respond(head)
  delivery.bytesSent = body.byteLength
  stream.end(body)
  if (stream.writableLength > 0) limitStall(stream, limits.stalledReaderMs)
}

/** Returns a function that cancels the source after a disconnect of the client. */
function writeStream(
  { stream, delivery, isHead, acceptsTrailers }: Writing,
  reply: Reply,
  source: BodySource,
  { clock, limits }: Http2Edge,
): () => void {
  let over = false
  let behind: Headers | undefined
  const hasBody = mayHaveBody(isHead, reply.status)
  const waitForTrailers = hasBody && acceptsTrailers
  const head = outgoingHead(reply)
  delivery.status = reply.status
  stream.respond(head, { waitForTrailers })
  if (waitForTrailers) stream.on('wantTrailers', () => sendTrailers(stream, behind))
  stream.on('drain', () => {
    stream.setTimeout(0)
    if (!over) source.resume()
  })
  source.start({
    write(chunk) {
      if (over || !hasBody) return true
      delivery.firstByteAt ??= clock.monotonic()
      delivery.bytesSent += chunk.byteLength
      if (stream.write(chunk)) return true
      limitStall(stream, limits.stalledReaderMs)
      return false
    },
    end(trailers) {
      if (over) return
      over = true
      behind = trailers
      delivery.complete = true
      stream.end()
      if (stream.writableLength > 0) limitStall(stream, limits.stalledReaderMs)
    },
    // An aborted body must not appear complete: the stream is reset with it.
    fail() {
      if (over) return
      over = true
      resetStream(stream)
    },
  })
  return () => {
    if (over) return
    over = true
    source.cancel()
  }
}

/**
 * Reports whether a response may have a body. For HEAD and statuses without one, Node ends the stream with
 * the head.
 */
function mayHaveBody(isHead: boolean, status: number): boolean {
  return !isHead && status !== 204 && status !== 205 && status !== 304
}

function sendTrailers(stream: ServerHttp2Stream, trailers: Headers | undefined): void {
  if (stream.closed || stream.destroyed) return
  try {
    const allowed = allowedTrailers(trailers) ?? {}
    for (const name in allowed) validateField(name, allowed[name] ?? '')
    stream.sendTrailers(allowed)
  } catch {
    // Invalid fields: without them the response must not appear complete.
    resetStream(stream)
  }
}

/** RFC 9113 section 8.2.2: removes connection-specific fields. Other fields must be valid in HTTP. */
function outgoingHead({ status, headers, tunnel }: Reply): OutgoingHttpHeaders {
  tunnel?.destroy()
  if (status < 200) throw new Error(`status ${status} is not valid in HTTP/2`)
  const head: OutgoingHttpHeaders = { ':status': status }
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || connectionFields.has(name)) continue
    validateField(name, value)
    head[name] = value
  }
  return head
}

/** Node validates names in HTTP/2, but not values: a NUL in a value would start another field. */
function validateField(name: string, value: string | string[]): void {
  validateHeaderName(name)
  if (typeof value === 'string') validateHeaderValue(name, value)
  else for (const one of value) validateHeaderValue(name, one)
}

function hintsOf(stream: ServerHttp2Stream): (status: number, headers: Headers) => void {
  let sent = 0
  return (status, headers) => {
    if (
      !isForwardedInformational(status) ||
      sent >= maxHints ||
      stream.headersSent ||
      stream.closed ||
      stream.destroyed
    )
      return
    sent += 1
    try {
      const head: OutgoingHttpHeaders = { ':status': status }
      for (const [name, value] of informationalFields(headers)) {
        validateField(name, value)
        head[name] = value
      }
      stream.additionalHeaders(head)
    } catch {
      // Invalid field: the final response does not depend on it.
    }
  }
}

/** Limits the time without progress of a client with unread data. */
function limitStall(stream: ServerHttp2Stream, limitMs: number): void {
  if (stream.listenerCount('timeout') === 0) stream.on('timeout', () => resetStream(stream))
  stream.setTimeout(limitMs)
}

/** RFC 9113 section 8.1: after a complete response, a reset with NO_ERROR stops the upload of the rest. */
function endUnread(stream: ServerHttp2Stream, body: RequestBody): void {
  body.discardUnlessRead()
  stream.on('finish', () => {
    if (body.ended()) return
    body.abort()
    stream.close(NGHTTP2_NO_ERROR)
  })
}

/** Rejects a request before routing. */
function refuse(stream: ServerHttp2Stream, status: number, message: string): void {
  stream.respond({
    ':status': status,
    'content-type': 'text/plain; charset=utf-8',
    'content-length': message.length,
  })
  stream.end(message)
  stream.on('finish', () => stream.close(NGHTTP2_NO_ERROR))
}
