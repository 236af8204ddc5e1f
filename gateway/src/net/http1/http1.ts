import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import { createTurns } from '../../lib/scheduling/turns.ts'
import type { Headers } from '../http/headers.ts'
import type { HttpServerLimits } from '../http/incoming-request.ts'
import type { Admission } from '../listener/admission.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'
import { enqueueRequest } from './pipelining.ts'
import { type Refusal, refusalOf, refuse, refuseSocket } from './refusal.ts'
import type { Http1Connection, Http1Edge, RequestMode } from './server-state.ts'
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
    turns: createTurns(),
    stalledReaderMs: limits.stalledReaderMs,
    maxPipelinedRequests: admission.limits.maxPipelinedRequests,
    requests: admission.requests,
    connections: new WeakMap(),
    isLastResponse: false,
    maxHeaders: undefined,
    draining: false,
    closeIdle: () => server.closeIdleConnections(),
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const refusal = refusalOf(request, limits, edge.maxHeaders)
    if (refusal) refuse(response, refusal)
    else enqueueRequest({ request, response, mode: plainRequest }, edge)
  }

  function onContinue(request: IncomingMessage, response: ServerResponse): void {
    const refusal = refusalOf(request, limits, edge.maxHeaders)
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
  server.on('connect', ({ url = '', headers }: IncomingMessage, socket: Socket, head: Buffer) => {
    const { connect, underWay = 0, ageTimer } = edge.connections.get(socket) ?? {}
    // Responses to earlier requests would be sent into the tunnel.
    if (connect === undefined || underWay > 0) refuseConnect(socket)
    else {
      // The age of the connection inside counts.
      clearTimeout(ageTimer)
      connect({ target: url, headers: headers as Headers, socket, head })
    }
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const refusal = refusalOf(request, limits, edge.maxHeaders)
    if (refusal) refuseSocket(socket, refusal)
    else acceptUpgrade({ request, socket, head }, edge)
  })
  // The server does not listen; this event starts its time limits.
  server.emit('listening')

  return {
    accept(socket, connection) {
      const awaitingTurn = new Set<() => void>()
      const accepted: Http1Connection = {
        ...connection,
        underWay: 0,
        pipelined: [],
        awaitingTurn,
        isEnding: false,
        last: undefined,
        ageTimer: undefined,
      }
      edge.connections.set(socket, accepted)
      const { settings } = connection
      // All connections of an address have the settings of the current configuration.
      edge.maxHeaders = settings?.http1.maxHeaders
      server.keepAliveTimeout = settings?.http1.idleMs ?? limits.keepAliveMs
      if (settings?.maxDurationMs !== undefined) limitAge(socket, accepted, settings.maxDurationMs)
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

/** Closes a connection at an age: with its last pending response, or at once if there is none. */
function limitAge(socket: Socket, connection: Http1Connection, limitMs: number): void {
  const timer = setTimeout(() => {
    if (connection.underWay === 0) socket.destroy()
    else connection.isEnding = true
  }, limitMs)
  connection.ageTimer = timer
  socket.on('close', () => clearTimeout(timer))
}

const plainRequest: RequestMode = { awaitsContinue: false, upgrade: undefined, openTunnel: undefined }
const waitingRequest: RequestMode = { awaitsContinue: true, upgrade: undefined, openTunnel: undefined }

/** Rejects CONNECT on listeners that are not forward proxies. */
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
