import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { tokenSource } from '../../lib/http-token.ts'
import { connectionFields } from '../http/connection-fields.ts'
import type { Headers } from '../http/headers.ts'
import type { Delivery } from '../http/incoming-request.ts'
import type { Reply } from '../http-client/send.ts'
import { splice } from '../tcp/splice.ts'
import { hasBody, lingerMs } from './exchange.ts'
import { enqueueRequest } from './pipelining.ts'
import type { Http1Edge, RequestMode } from './server-state.ts'

export type UpgradeRequest = {
  readonly request: IncomingMessage
  readonly socket: Socket
  /** Bytes received behind the request. */
  readonly head: Buffer
}

/** Many protocols have long idle times; this limit ends only abandoned connections. */
const idleTimeoutMs = 24 * 60 * 60 * 1000

/** RFC 9110 section 7.8: a list of protocols, each a token with an optional version. */
const protocolPattern = new RegExp(`^${tokenSource}(?:/${tokenSource})?$`)

/**
 * Reports whether a request may change the protocol. For others the `upgrade` field is ignored, as RFC 9110
 * section 7.8 permits: h2c (retired by RFC 9113), HTTP/1.0, requests with a body, which would precede the new
 * protocol, and requests behind pending responses. Such a request is the last of its connection, because the
 * parser drops the data received with it.
 */
export function mayUpgrade(request: IncomingMessage, { connections }: Http1Edge): boolean {
  const connection = connections.get(request.socket)
  if (!connection) return false
  const may = request.httpVersion === '1.1' && connection.underWay === 0 && !hasBody(request)
  const granted = may && protocolOf(request) !== undefined
  if (!granted) connection.last ??= request
  return granted
}

/** Returns the first protocol other than HTTP/2. */
function protocolOf({ headers }: IncomingMessage): string | undefined {
  const offered = (headers.upgrade ?? '').split(',').map((protocol) => protocol.trim())
  return offered.find((protocol) => protocol !== '' && !/^h2c?$/i.test(protocol))
}

/**
 * Handles an upgrade request. The connection has left the HTTP parser, so no request follows it after any
 * response.
 */
export function acceptUpgrade({ request, socket, head }: UpgradeRequest, edge: Http1Edge): void {
  const protocol = protocolOf(request) ?? ''
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  socket.on('error', () => socket.destroy())
  socket.on('drain', () => response.emit('drain'))
  socket.on('timeout', () => socket.destroy())
  closeAfter(response, socket)
  const websocket = protocol.toLowerCase() === 'websocket'
  if (!protocolPattern.test(protocol) || (websocket && request.method !== 'GET')) {
    refuseMalformed(response)
    return
  }
  if (head.length > 0) socket.unshift(head)
  const stopWatching = watchLeaving(socket)
  const mode: RequestMode = {
    awaitsContinue: false,
    upgrade: protocol,
    openTunnel(reply, delivery, ended) {
      stopWatching()
      openTunnel({ response, socket, protocol }, reply, { delivery, ended })
    },
  }
  enqueueRequest({ request, response, mode }, edge)
}

/** Detects a disconnect while the response is pending: nothing else reads the socket yet. */
function watchLeaving(socket: Socket): () => void {
  function onReadable() {
    if (socket.readableLength === 0) socket.read()
  }
  function onEnd() {
    socket.destroy()
  }
  socket.on('readable', onReadable)
  socket.on('end', onEnd)
  return () => {
    socket.off('readable', onReadable)
    socket.off('end', onEnd)
  }
}

function openTunnel(
  { response, socket, protocol }: { response: ServerResponse; socket: Socket; protocol: string },
  { headers, tunnel }: Reply,
  { delivery, ended }: { delivery: Delivery; ended: () => void },
): void {
  if (!tunnel) throw new Error('101 response without an upgraded connection')
  if (tunnel.destroyed || socket.destroyed) {
    tunnel.destroy()
    throw new Error('connection closed during the protocol upgrade')
  }
  try {
    response.writeHead(101, switchingHead(headers, protocol))
    response.flushHeaders()
  } catch (error) {
    tunnel.destroy()
    throw error
  }
  delivery.status = 101
  // The time limits of HTTP end here: silence may be intended.
  socket.setTimeout(0)
  splice(socket, tunnel, {
    idleTimeoutMs,
    onReceived() {},
    onSent(bytes) {
      delivery.bytesSent += bytes
    },
    onEnd(outcome) {
      delivery.complete = outcome.kind === 'complete'
      if (outcome.kind === 'broken' && outcome.by === 'upstream') delivery.failure = outcome.error
      ended()
    },
  })
}

/** A 101 response has no body (RFC 9110 section 15.2): `content-length` is removed. */
function switchingHead(headers: Headers, protocol: string): Headers {
  const head: Headers = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && !connectionFields.has(name) && name !== 'content-length') head[name] = value
  }
  head['connection'] = 'upgrade'
  head['upgrade'] = headers['upgrade'] ?? protocol
  return head
}

/** Closes the connection behind a response that remains HTTP; data received meanwhile is discarded. */
function closeAfter(response: ServerResponse, socket: Socket): void {
  response.on('finish', () => {
    socket.end()
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    socket.on('close', () => clearTimeout(timer))
  })
}

function refuseMalformed(response: ServerResponse): void {
  const message = 'malformed upgrade'
  response.writeHead(400, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': message.length,
    connection: 'close',
  })
  response.end(message)
}
