import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Cancellation, createCancellation } from '../lib/cancellation.ts'
import type { Clock } from '../lib/clock.ts'
import { GatewayError } from '../lib/gateway-error.ts'
import { type BodySource, isSource } from './body.ts'
import type { Headers } from './headers.ts'
import type { Reply } from './send.ts'

/** One request as it came from the wire. */
export type IncomingRequest = {
  method: string
  /** As sent; not normalised. */
  target: string
  version: string
  headers: Headers
  scheme: 'http' | 'https'
  /** Name the client asked for in its TLS handshake. */
  serverName: string | undefined
  address: string
  port: number
  /** The protocol the client wants to change to (`websocket`), where it may; such a request has no body. */
  upgrade: string | undefined
  /** Sends a 1xx answer before the final one; undefined where the client's HTTP version has none. */
  informational: ((status: number, headers: Headers) => void) | undefined
  /** Undefined when the request has none. */
  body: BodySource | undefined
  /** Cancelled when the connection closes before the answer is complete. */
  cancellation: Cancellation
  /** `Clock.monotonic()` when the head had arrived. */
  startedAt: number
}

/** What became of an answer. */
export type Delivery = {
  /** False when the client left, or the answer broke off. */
  complete: boolean
  /** Status sent, or undefined when no head was sent. */
  status: number | undefined
  bytesSent: number
  /** `Clock.monotonic()` at the first byte of the body; undefined when none was sent. */
  firstByteAt: number | undefined
  /** Why the answer could not be written. */
  failure?: unknown
}

/** Answers requests. A `reply` that rejects breaks the connection; `end` is called once per request when all is over. */
export type ExchangeHandler = {
  reply: Promise<Reply>
  end(delivery: Delivery): void
}

export type HttpServerOptions = {
  host: string
  port: number
  clock: Clock
  handle(request: IncomingRequest): ExchangeHandler
  limits: HttpServerLimits
}

export type HttpServerLimits = {
  /** Size of a request's head; more is 431. */
  maxHeaderBytes: number
  /** Longest wait for a request's head. */
  headersTimeoutMs: number
  /** Longest wait for a whole request; slow senders are cut off. */
  requestTimeoutMs: number
  /** How long an idle connection is kept. */
  keepAliveMs: number
  /** Longest wait for a client that reads none of what waits for it; the answer, and the upstream's, are given up. */
  stalledReaderMs: number
}

export const defaultServerLimits: HttpServerLimits = {
  maxHeaderBytes: 32 * 1024,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 300_000,
  keepAliveMs: 75_000,
  stalledReaderMs: 300_000,
}

export type HttpServer = {
  /** Port it listens on; the chosen one when 0 was asked for. */
  readonly port: number
  /** Accepts nothing new and closes idle connections; resolves when the last exchange has ended. */
  drain(): Promise<void>
  /** Ends every connection at once. */
  close(): void
}

/** How much longer than the answer a client may go on sending a body nobody reads. */
const lingerMs = 5_000

/** Listens; rejects with the system's error (`EADDRINUSE`, `EACCES`) when it cannot. */
export function listen(options: HttpServerOptions): Promise<HttpServer> {
  const { limits, clock, handle } = options
  const edge: Edge = {
    clock,
    handle,
    stalledReaderMs: limits.stalledReaderMs,
    draining: false,
    closeIdle: () => server.closeIdleConnections(),
  }
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
      noDelay: true,
      insecureHTTPParser: false,
    },
    (request, response) => answer(request, response, edge),
  )
  // Node drops headers past a count without a word; the size limit refuses them instead.
  server.maxHeadersCount = 0
  server.on('checkContinue', (request, response) => answer(request, response, edge, true))
  server.on('clientError', refuseMalformed)

  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Without a host, Node takes all addresses, also on a machine without IPv6, where `::` would fail.
    const host = options.host === '::' ? undefined : options.host
    server.listen({ host, port: options.port }, () => {
      server.off('error', reject)
      const { port } = server.address() as AddressInfo
      resolve({
        port,
        drain: () =>
          new Promise((closed) => {
            edge.draining = true
            server.close(() => closed())
            server.closeIdleConnections()
          }),
        close: () => {
          server.close()
          server.closeAllConnections()
        },
      })
    })
  })
}

/** What every request of one server shares. */
type Edge = Pick<HttpServerOptions, 'clock' | 'handle'> & {
  readonly stalledReaderMs: number
  draining: boolean
  closeIdle(): void
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  edge: Edge,
  awaitsContinue = false,
): void {
  const { clock } = edge
  const cancellation = createCancellation()
  const delivery: Delivery = { complete: false, status: undefined, bytesSent: 0, firstByteAt: undefined }
  const { socket } = request
  const exchange = edge.handle({
    method: request.method ?? 'GET',
    target: request.url ?? '/',
    version: request.httpVersion,
    headers: request.headers as Headers,
    scheme: 'http',
    serverName: undefined,
    upgrade: undefined,
    informational: undefined,
    address: socket.remoteAddress ?? '',
    port: socket.remotePort ?? 0,
    body: hasBody(request) ? requestBody(request, response, awaitsContinue) : undefined,
    cancellation,
    startedAt: clock.monotonic(),
  })
  let closed = false
  let replied = false
  let abandon: (() => void) | undefined

  function endWhenOver() {
    if (closed && replied) exchange.end(delivery)
  }

  response.on('close', () => {
    closed = true
    delivery.complete = response.writableFinished && delivery.complete
    if (!response.writableFinished) {
      // First the stream, so that what cancelling sets off no longer reaches this answer.
      abandon?.()
      cancellation.cancel()
    }
    endWhenOver()
    // A connection that was busy when the drain began is idle only now.
    if (edge.draining) edge.closeIdle()
  })

  function deliver(reply: Reply) {
    replied = true
    if (closed) {
      if (isSource(reply.body)) reply.body.cancel()
      endWhenOver()
      return
    }
    if (edge.draining) response.shouldKeepAlive = false
    if (isSource(reply.body)) abandon = writeStream(response, reply, reply.body, delivery, edge)
    else writeWhole(response, reply, reply.body, delivery, edge)
    if (!request.complete) limitUnreadBody(request, response)
  }

  // Node refuses to write some heads an upstream may send. That ends this connection, not the process.
  exchange.reply.then(deliver).catch((error: unknown) => {
    replied = true
    delivery.failure = error
    delivery.complete = false
    response.destroy()
    if (closed) endWhenOver()
  })
}

function writeWhole(
  response: ServerResponse,
  reply: Reply,
  body: Uint8Array | undefined,
  delivery: Delivery,
  { clock, stalledReaderMs }: Edge,
): void {
  const { headers, status } = reply
  delivery.status = status
  delivery.firstByteAt = clock.monotonic()
  delivery.complete = true
  if (status !== 204 && status !== 304)
    headers['content-length'] = String(body === undefined ? 0 : body.byteLength)
  response.writeHead(status, headers)
  if (body === undefined) {
    response.end()
    return
  }
  delivery.bytesSent = body.byteLength
  response.end(body)
  if (response.writableLength > 0) limitStall(response, stalledReaderMs)
}

/** Returns the function that gives the source up when the client has gone. */
function writeStream(
  response: ServerResponse,
  reply: Reply,
  source: BodySource,
  delivery: Delivery,
  { clock, stalledReaderMs }: Edge,
): () => void {
  let over = false
  delivery.status = reply.status
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
    end() {
      if (over) return
      over = true
      delivery.complete = true
      response.end()
      if (response.writableLength > 0) limitStall(response, stalledReaderMs)
    },
    // A broken body must not look complete: the connection breaks with it.
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

/**
 * Bounds the wait for a client that has something to read: a connection that takes none of it for so long is closed.
 * An answer behind an earlier one on its connection has no socket yet, and waits without a limit for its turn.
 */
function limitStall(response: ServerResponse, limitMs: number): void {
  const { socket } = response
  if (socket) socket.setTimeout(limitMs)
  else if (response.listenerCount('socket') === 0)
    response.once('socket', (later: Socket) => later.setTimeout(limitMs))
}

function hasBody(request: IncomingMessage): boolean {
  const { headers } = request
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function requestBody(
  request: IncomingMessage,
  response: ServerResponse,
  awaitsContinue: boolean,
): BodySource {
  let over = false
  return {
    start(sink) {
      if (awaitsContinue) response.writeContinue()
      request.on('data', (chunk: Buffer) => {
        if (!over && !sink.write(chunk)) request.pause()
      })
      request.on('end', () => {
        if (over) return
        over = true
        sink.end()
      })
      // A connection that breaks closes the response; the request itself stays silent without an error listener.
      response.on('close', () => {
        if (over) return
        over = true
        sink.fail(new GatewayError('request_aborted', 'the request ended before its body was complete'))
      })
    },
    resume: () => request.resume(),
    cancel() {
      over = true
      request.resume()
    },
  }
}

/** A reset connection also emits `close`, which is where it is dealt with. */
function ignore(): void {}

/** An answer given before the body was read: the rest is thrown away for a moment, so that the client gets to read the answer. */
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

/** Requests the parser refuses never reach a route; the answer says which kind of mistake it was. */
function refuseMalformed(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, message] = malformed[error.code ?? ''] ?? ['400 Bad Request', 'malformed HTTP request']
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: text/plain; charset=utf-8\r\n` +
      `content-length: ${message.length}\r\nconnection: close\r\n\r\n${message}`,
  )
}

const malformed: Record<string, [status: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'request headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request took too long to arrive'],
}
