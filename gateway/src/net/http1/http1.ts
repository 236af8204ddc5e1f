import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import type { HttpServerLimits } from '../http/incoming-request.ts'
import type { Admission } from '../listener/admission.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'
import { enqueueRequest } from './pipelining.ts'
import { type Refusal, refusalOf, refuse, refuseSocket } from './refusal.ts'
import type { Http1Edge, RequestMode } from './server-state.ts'
import { acceptUpgrade, mayUpgrade } from './upgrade.ts'

/** HTTP/1 on connections accepted elsewhere. */
export type Http1 = {
  accept(socket: Socket, connection: HttpConnection): void
  /** Sends 408 to a connection without a complete first request in time. */
  refuseLate(socket: Socket): void
  /** Closes each connection after its next response, so that none is idle, or in use, at the drain. */
  announceDrain(): void
  /** Closes each connection when it becomes idle. */
  drain(): void
  /** Closes the server. Requires that no connection is open. */
  close(): void
}

type Http1Options = { clock: Clock; limits: HttpServerLimits; admission: Admission }

export function createHttp1({ clock, limits, admission }: Http1Options): Http1 {
  const edge: Http1Edge = {
    clock,
    stalledReaderMs: limits.stalledReaderMs,
    maxPipelinedRequests: admission.limits.maxPipelinedRequests,
    requests: admission.requests,
    connections: new WeakMap(),
    isLastResponse: false,
    draining: false,
    closeIdle: () => server.closeIdleConnections(),
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const refusal = refusalOf(request, limits)
    if (refusal) refuse(response, refusal)
    else enqueueRequest({ request, response, mode: plainRequest }, edge)
  }

  function onContinue(request: IncomingMessage, response: ServerResponse): void {
    const refusal = refusalOf(request, limits)
    if (refusal) refuse(response, refusal)
    else enqueueRequest({ request, response, mode: waitingRequest }, edge)
  }

  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
      insecureHTTPParser: false,
      // Node would drop all but the first of duplicate `host` or credential fields; joined, they are invalid.
      joinDuplicateHeaders: true,
      shouldUpgradeCallback: (request) => mayUpgrade(request, edge),
    },
    onRequest,
  )
  // Node silently drops headers beyond a count; the size limit rejects them instead.
  server.maxHeadersCount = 0
  server.on('checkContinue', onContinue)
  server.on('clientError', refuseMalformed)
  server.on('connect', (_request: IncomingMessage, socket: Socket) => refuseConnect(socket))
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const refusal = refusalOf(request, limits)
    if (refusal) refuseSocket(socket, refusal)
    else acceptUpgrade({ request, socket, head }, edge)
  })
  // The server does not listen; this event starts its time limits.
  server.emit('listening')

  return {
    accept(socket, connection) {
      const awaitingTurn = new Set<() => void>()
      edge.connections.set(socket, {
        ...connection,
        underWay: 0,
        pipelined: [],
        awaitingTurn,
        last: undefined,
      })
      socket.on('close', () => {
        for (const end of awaitingTurn) end()
      })
      server.emit('connection', socket)
    },
    refuseLate: (socket) => refuseMalformed({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, socket),
    announceDrain() {
      edge.isLastResponse = true
    },
    drain() {
      edge.isLastResponse = true
      edge.draining = true
      server.closeIdleConnections()
    },
    close: () => {
      server.close()
    },
  }
}

const plainRequest: RequestMode = { awaitsContinue: false, upgrade: undefined, openTunnel: undefined }
const waitingRequest: RequestMode = { awaitsContinue: true, upgrade: undefined, openTunnel: undefined }

/** CONNECT is rejected: the gateway is not a forward proxy. */
function refuseConnect(socket: Socket): void {
  refuseSocket(socket, { status: 405, message: 'CONNECT is not supported' })
}

/** Rejects requests that the parser rejects; the response names the kind of error. */
function refuseMalformed(error: { code?: string; rawPacket?: unknown }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') socket.destroy()
  else refuseSocket(socket, refusals[error.code ?? ''] ?? malformed)
}

const malformed: Refusal = { status: 400, message: 'malformed HTTP request' }
const refusals: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'request headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request took too long to arrive' },
}
