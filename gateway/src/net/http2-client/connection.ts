import type { Socket } from 'node:net'
import type { Turns } from '../../lib/scheduling/turns.ts'
import { messageOf } from '../../lib/thrown.ts'
import { type Connection, type ConnectionOwner, lose, schedule, sendQueues } from './connection-state.ts'
import { createFrameWriter } from './frame-writer.ts'
import { createFrameReader, defaultWindow, errorCodes, Http2Violation } from './frames.ts'
import { createHeaderDecoder } from './hpack/hpack.ts'
import { connectionWindow, initialWindows, maxListBytes, receiveFrame } from './receive.ts'

export type ConnectionOptions = {
  readonly turns: Turns
  /** Time without received bytes during a stream, after which the connection is probed. */
  readonly keepAliveMs: number
  /** Longest wait for the response to a probe. */
  readonly probeMs: number
  /** Time without streams, after which the connection is closed. */
  readonly idleMs: number
}

const checkMs = 1_000
const probe = Buffer.alloc(8)

/** Streams are opened only after the settings of the server, so that the default limit is not used. */
const unlimited = 2 ** 31

/** Starts HTTP/2 on an open socket. */
export function createConnection(
  socket: Socket,
  options: ConnectionOptions,
  owner: ConnectionOwner,
): Connection {
  const connection: Connection = {
    socket,
    writer: createFrameWriter((bytes) => socket.write(bytes)),
    decoder: createHeaderDecoder(maxListBytes),
    turns: options.turns,
    owner,
    state: 'settling',
    streams: new Map(),
    sending: new Set(),
    nextId: 1,
    maxStreams: unlimited,
    initialWindow: defaultWindow,
    ...initialWindows,
    consumed: 0,
    partialHeaders: undefined,
    idleFrames: 0,
    idleSince: 0,
    lateFrames: 0,
    isScheduled: false,
    receivedAt: performance.now(),
    openedAt: performance.now(),
    pingedAt: undefined,
    afterReads: () => writeFrames(connection),
  }
  listen(connection)
  watch(connection, options)
  connection.writer.preface({ maxListBytes, windowIncrement: connectionWindow - defaultWindow })
  schedule(connection)
  return connection
}

function listen(connection: Connection): void {
  const { socket } = connection
  const read = createFrameReader((frame) => receiveFrame(connection, frame))
  socket.on('data', (bytes: Buffer) => {
    connection.receivedAt = performance.now()
    try {
      read(bytes)
    } catch (error) {
      violate(connection, error)
    }
  })
  socket.on('drain', () => sendQueues(connection))
  socket.on('error', (error) => lose(connection, 'the connection failed', error))
  socket.on('end', () => lose(connection, 'the server closed the connection'))
  socket.on('close', () => lose(connection, 'the connection was closed'))
}

/** Ends the connection after a violation of the server, or an error of a receiver. */
function violate(connection: Connection, error: unknown): void {
  const { writer } = connection
  if (error instanceof Http2Violation) writer.goAway(error.code)
  else writer.goAway(error instanceof RangeError ? errorCodes.compression : errorCodes.internal)
  writer.flush()
  lose(connection, messageOf(error), error)
}

function writeFrames(connection: Connection): void {
  connection.isScheduled = false
  const { state, streams, writer } = connection
  if (state === 'closed') return
  writer.flush()
  if (state === 'draining' && streams.size === 0) lose(connection, 'the connection is not used')
}

/** Ends a connection that does not respond to probes, or is not used. */
function watch(connection: Connection, { keepAliveMs, probeMs, idleMs }: ConnectionOptions): void {
  const timer = setInterval(() => {
    const { receivedAt, openedAt, pingedAt, streams, state } = connection
    const now = performance.now()
    if (state === 'closed') {
      clearInterval(timer)
      return
    }
    if (pingedAt !== undefined && receivedAt < pingedAt) {
      if (now - pingedAt >= probeMs) lose(connection, 'the server does not respond to a probe')
      return
    }
    if (streams.size === 0 && now - Math.max(openedAt, receivedAt) >= idleMs) {
      lose(connection, 'the connection is not used')
      return
    }
    // The server has not responded to the last stream, or to one that is open.
    if (now - receivedAt < keepAliveMs || (streams.size === 0 && openedAt <= receivedAt)) return
    connection.pingedAt = now
    connection.writer.ping(probe, false)
    schedule(connection)
  }, checkMs).unref()
  connection.socket.once('close', () => clearInterval(timer))
}
