import type { Socket } from 'node:net'
import { asGatewayError, GatewayError } from '../../lib/gateway-error.ts'
import type { Turns } from '../../lib/scheduling/turns.ts'
import type { Headers } from '../http/headers.ts'
import { mayRepeat } from '../http-client/repeatable.ts'
import type { Flow } from '../http-client/upstream-body.ts'
import {
  abortCall,
  acceptsWhole,
  type Call,
  deliver,
  failCall,
  receiveEnd,
  receiveHead,
  receiveInformational,
  receiveTunnel,
  startCall,
  storePiece,
} from './call.ts'
import type { Deadlines } from './deadlines.ts'
import { cannotBeForwarded, connectionLost, isClose, violationError } from './errors.ts'
import type { ResponseHead } from './parser/head.ts'
import {
  createResponseParser,
  endOfConnection,
  expectResponse,
  parse,
  type ResponseParser,
  resume,
  stop,
} from './parser/parser.ts'
import { expectsBody } from './request-head.ts'
import { drained, startUpload, writeJoined } from './upload.ts'

/** A connection to an upstream. It serves one call at a time. */
export type Connection = {
  readonly socket: Socket
  readonly parser: ResponseParser
  readonly options: ConnectionOptions
  readonly owner: ConnectionOwner
  /**
   * `settling`: between a response and the end of its turn; `idle`; `assigned`: with a call that is not sent
   * yet; `head`: waiting for a response; `body`: receiving one; `closed`.
   */
  state: 'settling' | 'idle' | 'assigned' | 'head' | 'body' | 'closed'
  call: Call | undefined
  /** Responses received so far. */
  served: number
  /** Bytes were received since the request. */
  hasReceived: boolean
  /** Request and response permit another request. */
  persistent: boolean
  keepAliveMs: number
  /** The peer has closed while the reader of the body was full. */
  hasEnded: boolean
  isParsing: boolean
  /** Unsubscribes from the socket. */
  unlisten: () => void
  deadline: number
  disconnect(): void
  expire(): void
  afterReads(): void
}

export type ConnectionOptions = {
  readonly deadlines: Deadlines
  readonly turns: Turns
  /** Defaults of the limits of a request. */
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly keepAliveMs: number
  /** Limit of the time that a server announces. */
  readonly maxKeepAliveMs: number
}

/** Receiver of changes of a connection. */
export type ConnectionOwner = {
  /** The connection may serve a call. */
  available(connection: Connection): void
  /** The connection is closed. Called once. */
  closed(connection: Connection): void
  /** A connection closed before the call was sent. */
  unsent(call: Call): void
  /** A kept-alive connection closed instead of a response, and the call may be sent twice. */
  repeat(call: Call): void
}

/** Margin before the announced time, for requests in transit. */
const keepAliveMarginMs = 2_000

const announcedTimeout = /(?:^|,)[\t ]*timeout=(\d{1,9})/i

export function createConnection(
  socket: Socket,
  options: ConnectionOptions,
  owner: ConnectionOwner,
): Connection {
  const connection: Connection = {
    socket,
    parser: createResponseParser({
      head: (head) => onHead(connection, head),
      data: (bytes) => onPiece(connection, bytes),
      end: (trailers) => onEnd(connection, trailers),
    }),
    options,
    owner,
    state: 'settling',
    call: undefined,
    served: 0,
    hasReceived: false,
    persistent: false,
    keepAliveMs: options.keepAliveMs,
    hasEnded: false,
    isParsing: false,
    unlisten: ignore,
    deadline: Number.POSITIVE_INFINITY,
    disconnect: () => close(connection),
    expire: () => expire(connection),
    afterReads: () => afterReads(connection),
  }
  connection.unlisten = listen(connection)
  options.deadlines.add(connection)
  return connection
}

/** Subscribes to the events of the socket; the returned function unsubscribes. */
function listen(connection: Connection): () => void {
  const { socket } = connection

  function onData(bytes: Buffer): void {
    connection.hasReceived = true
    read(connection, bytes)
  }
  function onEnd(): void {
    connection.hasEnded = true
    if (!connection.parser.paused) endAfterPeer(connection)
  }
  function onDrain(): void {
    const { call } = connection
    if (call?.upload !== undefined) drained(call.upload)
    refreshHeadDeadline(connection)
  }
  function onClose(): void {
    if (!connection.hasEnded) lose(connection, undefined)
  }

  socket.on('data', onData).on('end', onEnd).on('drain', onDrain).on('close', onClose)
  // Stays: a socket without a listener for errors would end the process.
  socket.on('error', (error) => lose(connection, error))
  return () => {
    socket.off('data', onData).off('end', onEnd).off('drain', onDrain).off('close', onClose)
  }
}

/** Reserves an idle connection for a call, which is sent after the reads of this turn. */
export function assign(connection: Connection, call: Call): void {
  connection.state = 'assigned'
  connection.call = call
  connection.deadline = Number.POSITIVE_INFINITY
  connection.options.turns.schedule(connection)
}

/** Sends a call on a connection that has no other. */
export function sendCall(connection: Connection, call: Call): void {
  const { socket } = connection
  const { request, prepared, upload } = call
  connection.state = 'head'
  connection.call = call
  startCall(call, connection.disconnect)
  connection.hasReceived = false
  expectResponse(connection.parser, { method: request.method, upgrade: request.upgrade !== undefined })
  refreshHeadDeadline(connection)
  if (upload !== undefined) {
    const { head, declaredLength } = prepared
    startUpload(
      upload,
      socket,
      { head, declaredLength, expectsBody: expectsBody(request.method) },
      {
        progressed: () => refreshHeadDeadline(connection),
        failed: (error) => abortCall(call, connectionLost(error)),
        mismatched: () => abortCall(call, cannotBeForwarded('content-length mismatch')),
      },
    )
  } else if (prepared.bytes === undefined) socket.write(prepared.head, 'latin1')
  else writeJoined(socket, prepared.head, prepared.bytes)
}

/** Closes the connection without a report to its call. */
export function close(connection: Connection): void {
  if (connection.state === 'closed') return
  detach(connection)
  connection.socket.destroy()
}

function detach(connection: Connection): void {
  connection.state = 'closed'
  connection.call = undefined
  stop(connection.parser)
  connection.options.deadlines.remove(connection)
  connection.owner.closed(connection)
}

function afterReads(connection: Connection): void {
  const { state, call } = connection
  if (state === 'assigned' && call !== undefined && !call.isOver) sendCall(connection, call)
  else if (state === 'assigned' || state === 'settling') release(connection)
}

/** Offers the connection to the owner. */
export function release(connection: Connection): void {
  connection.state = 'idle'
  connection.call = undefined
  connection.deadline = connection.options.deadlines.after(connection.keepAliveMs)
  connection.owner.available(connection)
}

/**
 * The limit starts again with each part of the request. It does not count while the body's sender is slow.
 */
function refreshHeadDeadline(connection: Connection): void {
  const { state, call, options } = connection
  if (state !== 'head' || call === undefined) return
  const isUnlimited = call.request.firstByteTimeoutMs !== undefined || call.upload?.state === 'flowing'
  connection.deadline = isUnlimited
    ? Number.POSITIVE_INFINITY
    : options.deadlines.after(options.firstByteTimeoutMs)
}

function refreshBodyDeadline(connection: Connection): void {
  const { call, options } = connection
  connection.deadline = options.deadlines.after(call?.request.idleTimeoutMs ?? options.idleTimeoutMs)
}

function expire(connection: Connection): void {
  const { state, call } = connection
  if (call === undefined || state === 'idle') {
    close(connection)
    return
  }
  const message = state === 'head' ? 'upstream call timeout' : 'upstream stopped sending'
  abortCall(call, new GatewayError('upstream_timeout', message))
}

/** Parses received bytes, or continues after a pause. */
function read(connection: Connection, bytes: Buffer | undefined): void {
  const { parser, call: receiver } = connection
  connection.isParsing = true
  try {
    const violation = bytes === undefined ? resume(parser) : parse(parser, bytes)
    if (violation !== undefined) lose(connection, violationError(violation))
  } catch (error) {
    // Thrown by the receiver of the response.
    receiverFailed(connection, receiver, asGatewayError(error))
  } finally {
    connection.isParsing = false
  }
  const { call } = connection
  if (call?.undelivered !== undefined) deliver(call, createFlow(connection, call))
}

function onHead(connection: Connection, head: ResponseHead): void {
  const { call } = connection
  if (call === undefined) return
  const { status, headers } = head
  if (status === 101) {
    openTunnel(connection, call, headers)
  } else if (status < 200) {
    refreshHeadDeadline(connection)
    const excess = receiveInformational(call, status, headers)
    if (excess !== undefined) abortCall(call, excess)
  } else {
    connection.state = 'body'
    connection.persistent = call.prepared.persistent && head.persistent && readKeepAlive(connection, headers)
    refreshBodyDeadline(connection)
    receiveHead(call, status, headers)
    if (!acceptsWhole(call)) deliver(call, createFlow(connection, call))
  }
}

/** Applies the announced time. Returns false for one that is too short for another request. */
function readKeepAlive(connection: Connection, headers: Headers): boolean {
  const { keepAliveMs, maxKeepAliveMs } = connection.options
  const announced = headers['keep-alive']
  const seconds = announced === undefined ? undefined : announcedTimeout.exec(String(announced))?.[1]
  connection.keepAliveMs =
    seconds === undefined
      ? keepAliveMs
      : Math.min(Number(seconds) * 1_000 - keepAliveMarginMs, maxKeepAliveMs)
  return connection.keepAliveMs > 0
}

function onPiece(connection: Connection, bytes: Buffer): void {
  const { call } = connection
  if (call === undefined) return
  refreshBodyDeadline(connection)
  if (storePiece(call, bytes)) return
  if (call.body === undefined) deliver(call, createFlow(connection, call))
  call.body?.write(bytes)
}

/** Ends the call, after which the connection serves another if it is in a defined state. */
function onEnd(connection: Connection, trailers: Headers | undefined): void {
  const { call, socket } = connection
  if (call === undefined) return
  const isSent = (call.upload === undefined || call.upload.state === 'over') && socket.writableLength === 0
  connection.served += 1
  connection.call = undefined
  if (connection.persistent && isSent && !connection.hasEnded) {
    connection.state = 'settling'
    connection.deadline = Number.POSITIVE_INFINITY
    connection.options.turns.schedule(connection)
  } else close(connection)
  if (trailers !== undefined && call.undelivered !== undefined) deliver(call, finishedFlow)
  receiveEnd(call, trailers)
}

const finishedFlow: Flow = { pause() {}, resume() {}, abort() {} }

/** Flow control of the body of one call. Without effect after its end: the connection may serve another. */
function createFlow(connection: Connection, call: Call): Flow {
  const { parser, socket } = connection
  return {
    pause() {
      if (connection.call !== call) return
      parser.paused = true
      socket.pause()
      connection.deadline = Number.POSITIVE_INFINITY
    },
    resume() {
      if (connection.call !== call || !parser.paused) return
      refreshBodyDeadline(connection)
      if (connection.isParsing) parser.paused = false
      else read(connection, undefined)
      if (parser.paused) return
      if (connection.hasEnded) endAfterPeer(connection)
      else socket.resume()
    },
    abort() {
      if (connection.call === call) close(connection)
    },
  }
}

/** Hands the connection over in its new protocol. */
function openTunnel(connection: Connection, call: Call, headers: Headers): void {
  const { socket, parser } = connection
  const { rest } = parser
  detach(connection)
  connection.unlisten()
  socket.pause()
  if (rest.length > 0) socket.unshift(rest)
  // The removal of the last listener restores the initial state: the next listener for data starts the flow.
  socket.on('readable', ignore)
  socket.off('readable', ignore)
  receiveTunnel(call, { status: 101, headers, body: undefined, tunnel: socket })
}

function ignore(): void {}

/** The end of the connection is the end of a body without a length, and an error at any other point. */
function endAfterPeer(connection: Connection): void {
  const { parser, call } = connection
  try {
    if (!endOfConnection(parser)) lose(connection, undefined)
  } catch (error) {
    receiverFailed(connection, call, asGatewayError(error))
  }
}

function receiverFailed(connection: Connection, call: Call | undefined, error: GatewayError): void {
  const wasOver = call?.isOver === true
  lose(connection, error)
  if (wasOver) call.body?.fail(error)
}

/** The connection has failed, or was closed by the peer if there is no error. */
function lose(connection: Connection, cause: Error | undefined): void {
  const { state, call, owner } = connection
  if (state === 'closed') return
  const canRepeat = call !== undefined && isLateClose(connection, call, cause)
  close(connection)
  if (call === undefined || call.isOver) return
  call.disconnect = undefined
  if (state === 'assigned') owner.unsent(call)
  else if (canRepeat) {
    call.hasRepeated = true
    owner.repeat(call)
  } else failCall(call, connectionLost(cause))
}

/**
 * A server may close a kept-alive connection at the moment of its reuse (RFC 9112 section 9.3.1). A request
 * that may be sent twice is repeated once.
 */
function isLateClose({ served, hasReceived }: Connection, call: Call, cause: Error | undefined): boolean {
  const isFirstFailure = served > 0 && !hasReceived && !call.hasRepeated
  return isFirstFailure && call.upload === undefined && isClose(cause) && mayRepeat(call.request)
}
