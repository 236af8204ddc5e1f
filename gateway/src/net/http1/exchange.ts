import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createCancellation } from '../../lib/cancellation.ts'
import { type BodySource, isSource } from '../http/body.ts'
import type { Headers } from '../http/headers.ts'
import type { Delivery } from '../http/incoming-request.ts'
import { fieldLines, informationalFields, isForwardedInformational } from '../http/informational.ts'
import { acceptsTrailers, allowedTrailers } from '../http/trailers.ts'
import { discard, type Reply } from '../http-client/send.ts'
import { requestBody } from './request-body.ts'
import type { Http1Connection, Http1Edge, RequestMode } from './server-state.ts'

/** Time after the response during which a client may continue to send an unread body. */
export const lingerMs = 5_000

/** Unsent bytes of a connection above which further informational responses are dropped. */
const maxHintBytes = 64 * 1024

/** Size of a body that is sent as a text, in one buffer with the head. */
const maxJoinedBytes = 8 * 1024

/** Connection and mode of one request. */
type Turn = {
  readonly connection: Http1Connection
  readonly mode: RequestMode
  /** Called once, when the exchange is over. */
  onOver(): void
}

export function handleExchange(
  request: IncomingMessage,
  response: ServerResponse,
  edge: Http1Edge,
  turn: Turn,
): void {
  const { clock } = edge
  const { connection, mode } = turn
  edge.requests.changed(1)
  const cancellation = createCancellation()
  const delivery: Delivery = { complete: false, status: undefined, bytesSent: 0, firstByteAt: undefined }
  const exchange = connection.handle({
    method: request.method ?? 'GET',
    target: request.url ?? '/',
    version: request.httpVersion,
    headers: request.headers as Headers,
    connection: connection.connection,
    upgrade: mode.upgrade,
    informational:
      request.httpVersionMinor === 0 ? undefined : (status, headers) => sendHint(response, status, headers),
    body: hasBody(request) ? requestBody(request, response, { mode, connection }) : undefined,
    cancellation,
    startedAt: clock.monotonic(),
  })
  let closed = false
  let replied = false
  let tunnelled = false
  let abandon: (() => void) | undefined

  function endWhenOver() {
    if (closed && replied) exchange.end(delivery)
  }

  function onClose() {
    if (closed) return
    closed = true
    connection.awaitingTurn.delete(onClose)
    edge.requests.changed(-1)
    turn.onOver()
    if (tunnelled) return
    delivery.complete = response.writableFinished && delivery.complete
    if (!response.writableFinished) {
      // Order: abandon the body first, so that the effects of the cancellation cannot reach this response.
      abandon?.()
      cancellation.cancel()
    }
    endWhenOver()
    // A connection that was active at the start of the drain is idle only now.
    if (edge.draining) edge.closeIdle()
  }

  response.on('close', onClose)
  if (response.socket === null) connection.awaitingTurn.add(onClose)

  function deliver(reply: Reply) {
    replied = true
    if (closed) {
      discard(reply)
      endWhenOver()
      return
    }
    if (reply.status === 101) {
      if (!mode.openTunnel) {
        reply.tunnel?.destroy()
        throw new Error('protocol change without an upgrade request')
      }
      mode.openTunnel(reply, delivery, () => exchange.end(delivery))
      tunnelled = true
      return
    }
    if (edge.isLastResponse || connection.isEnding) response.shouldKeepAlive = false
    if (isSource(reply.body)) abandon = writeStream({ request, response, delivery }, reply, reply.body, edge)
    else writeWhole(response, reply, reply.body, delivery, edge)
    if (!request.complete) limitUnreadBody(request, response)
  }

  // Node rejects some heads that an upstream may send. This ends the connection, not the process.
  function fail(error: unknown) {
    replied = true
    delivery.failure = error
    delivery.complete = false
    response.destroy()
    if (closed) endWhenOver()
  }

  function deliverOrFail(reply: Reply) {
    try {
      deliver(reply)
    } catch (error) {
      fail(error)
    }
  }

  exchange.reply.then((reply) => {
    // 20 % less CPU for a hit of the response cache (workload `cache` of the benchmark): the receivers of
    // writes between the reads would be woken by each of them.
    if (isSource(reply.body) || reply.status === 101) deliverOrFail(reply)
    else edge.turns.schedule({ afterReads: () => deliverOrFail(reply) })
  }, fail)
}

function writeWhole(
  response: ServerResponse,
  reply: Reply,
  body: Uint8Array | undefined,
  delivery: Delivery,
  { clock, stalledReaderMs }: Http1Edge,
): void {
  const { headers, status } = reply
  delivery.status = status
  delivery.firstByteAt = clock.monotonic()
  delivery.complete = true
  if (status !== 204 && status !== 304)
    headers['content-length'] = String(body === undefined ? 0 : body.byteLength)
  if (headers['trailer'] !== undefined) delete headers['trailer']
  response.writeHead(status, headers)
  if (body === undefined) {
    response.end()
    return
  }
  delivery.bytesSent = body.byteLength
  // Node joins a text with the head in one buffer: 5 % fewer instructions in the server than for a buffer.
  if (body.byteLength <= maxJoinedBytes) response.end(latin1TextOf(body), 'latin1')
  else response.end(body)
  if (response.writableLength > 0) limitStall(response, stalledReaderMs)
}

/** Bytes as a text with one character per byte. */
function latin1TextOf(body: Uint8Array): string {
  const buffer = body instanceof Buffer ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return buffer.toString('latin1')
}

/** Returns a function that cancels the source after a disconnect of the client. */
function writeStream(
  { request, response, delivery }: { request: IncomingMessage; response: ServerResponse; delivery: Delivery },
  reply: Reply,
  source: BodySource,
  { clock, stalledReaderMs }: Http1Edge,
): () => void {
  let over = false
  delivery.status = reply.status
  // RFC 9110 section 6.6.2 announces trailers; Node throws where no trailers can follow.
  if (reply.headers['trailer'] !== undefined && !mayHaveTrailers(request, reply)) {
    delete reply.headers['trailer']
  }
  response.writeHead(reply.status, reply.headers)
  response.on('drain', () => {
    response.socket?.setTimeout(0)
    if (!over) source.resume()
  })
  source.start({
    write(chunk) {
      if (over) return true
      delivery.firstByteAt ??= clock.monotonic()
      delivery.bytesSent += chunk.byteLength
      if (response.write(chunk)) return true
      limitStall(response, stalledReaderMs)
      return false
    },
    end(trailers) {
      if (over) return
      over = true
      if (trailers && mayHaveTrailers(request, reply) && !addTrailers(response, trailers)) {
        response.destroy()
        return
      }
      delivery.complete = true
      response.end()
      if (response.writableLength > 0) limitStall(response, stalledReaderMs)
    },
    // An aborted body must not appear complete: the connection is aborted with it.
    fail() {
      if (over) return
      over = true
      response.destroy()
    },
  })
  if (delivery.bytesSent === 0 && !over) response.flushHeaders()
  return () => {
    if (over) return
    over = true
    source.cancel()
  }
}

function mayHaveTrailers(request: IncomingMessage, reply: Reply): boolean {
  return (
    request.httpVersionMinor !== 0 &&
    reply.headers['content-length'] === undefined &&
    acceptsTrailers(request.headers as Headers)
  )
}

/** Returns false for invalid fields: without them the response must not appear complete. */
function addTrailers(response: ServerResponse, trailers: Headers): boolean {
  const allowed = allowedTrailers(trailers)
  if (allowed === undefined) return true
  try {
    response.addTrailers(Object.entries(allowed).flatMap(fieldLines))
    return true
  } catch {
    return false
  }
}

function sendHint(response: ServerResponse, status: number, headers: Headers): void {
  if (!isForwardedInformational(status) || response.headersSent || response.destroyed) return
  if (response.writableLength > maxHintBytes) return
  try {
    response.writeInformation(status, informationalFields(headers).flat())
  } catch {
    // Invalid field: the final response does not depend on it.
  }
}

/**
 * Limits the time without progress of a client with unread data; then the connection closes. A response
 * behind an earlier one on its connection has no socket yet, and waits for its turn without a limit.
 */
function limitStall(response: ServerResponse, limitMs: number): void {
  const { socket } = response
  if (socket) socket.setTimeout(limitMs)
  else if (response.listenerCount('socket') === 0)
    response.once('socket', (later: Socket) => later.setTimeout(limitMs))
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** A reset connection also emits `close`, which is handled. */
function ignore(): void {}

/**
 * For a response sent before the body was read: discards the rest for a limited time, so that the client can
 * read the response.
 */
function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  request.on('error', ignore)
  request.resume()
  response.on('finish', () => {
    const timer = setTimeout(() => {
      if (!request.complete) request.socket.destroy()
    }, lingerMs)
    timer.unref()
    request.on('close', () => clearTimeout(timer))
  })
}
