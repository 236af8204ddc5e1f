import type { Socket } from 'node:net'
import type { OpenedSocket, OpenSocket } from '../http1-client/open-socket.ts'
import { type ConnectionOptions, createConnection } from './connection.ts'
import {
  type Connection,
  createStream,
  type Http2Stream,
  hasCapacity,
  lose,
  openStream,
  resetStream,
} from './connection-state.ts'
import type { StreamEnd, StreamReceiver } from './stream.ts'

/** A server, with one connection for all streams, which is opened on demand. */
export type Http2Origin = {
  /** Starts a stream; it waits for the connection if necessary. */
  start(block: Uint8Array, receiver: StreamReceiver): Http2Stream
  /** Ends a stream of the client. */
  cancel(stream: Http2Stream): void
  /** Whether the origin has no streams and no connection. */
  isUnused(): boolean
  /** Closes the connections. Their streams end. */
  close(): void
}

export type OriginOptions = {
  readonly openSocket: OpenSocket
  /** Longest wait for the settings of the server. */
  readonly settingsMs: number
  readonly connection: ConnectionOptions
}

/** Limit of streams that wait for a connection. */
const maxWaiting = 10_000
/** Wait before the next attempt after the first failed one, and limit of its growth. */
const firstBackOffMs = 100
const maxBackOffMs = 2_000

type State = {
  readonly options: OriginOptions
  /** The connection that opens streams, also before it may. */
  current: Connection | undefined
  /** Ends an attempt to connect. */
  abandon: (() => void) | undefined
  readonly connections: Set<Connection>
  readonly waiting: Set<Http2Stream>
  failures: number
  /** The last failure, until the next attempt is permitted. */
  failure: { readonly end: StreamEnd; readonly until: number } | undefined
  isClosed: boolean
}

export function createOrigin(options: OriginOptions): Http2Origin {
  const state: State = {
    options,
    current: undefined,
    abandon: undefined,
    connections: new Set(),
    waiting: new Set(),
    failures: 0,
    failure: undefined,
    isClosed: false,
  }
  return {
    start(block, receiver) {
      const stream = createStream(block, receiver)
      start(state, stream)
      return stream
    },
    cancel(stream) {
      state.waiting.delete(stream)
      resetStream(stream)
    },
    isUnused: () => state.connections.size === 0 && state.waiting.size === 0 && state.abandon === undefined,
    close() {
      state.isClosed = true
      state.abandon?.()
      for (const connection of state.connections) lose(connection, 'the client is closed')
      failWaiting(state, { kind: 'lost', reason: 'the client is closed' })
    },
  }
}

function start(state: State, stream: Http2Stream): void {
  const { current, waiting, failure, isClosed } = state
  if (current !== undefined && waiting.size === 0 && hasCapacity(current)) {
    openStream(current, stream)
    return
  }
  if (isClosed) endLater(stream, { kind: 'lost', reason: 'the client is closed' })
  else if (waiting.size >= maxWaiting) endLater(stream, { kind: 'overloaded' })
  else if (failure !== undefined && performance.now() < failure.until) endLater(stream, failure.end)
  else {
    waiting.add(stream)
    if (current === undefined) connect(state)
  }
}

/** Reports the end after the function that starts the stream has returned. */
function endLater(stream: Http2Stream, end: StreamEnd): void {
  queueMicrotask(() => endStream(stream, end))
}

function endStream(stream: Http2Stream, end: StreamEnd): void {
  if (stream.phase === 'over') return
  stream.phase = 'over'
  stream.receiver.onEnd(end)
}

function connect(state: State): void {
  if (state.abandon !== undefined) return
  const opening = state.options.openSocket((opened: OpenedSocket) => {
    state.abandon = undefined
    if (opened.kind === 'failed') {
      fail(state, { kind: 'lost', reason: `no connection: ${opened.error.message}`, cause: opened.error })
    } else begin(state, opened.socket)
  })
  state.abandon = () => {
    opening.abandon()
    state.abandon = undefined
  }
}

function begin(state: State, socket: Socket): void {
  let isSettled = false
  const timer = setTimeout(
    () => lose(connection, 'no connection: the server sent no settings'),
    state.options.settingsMs,
  )
  const connection = createConnection(socket, state.options.connection, {
    available() {
      if (!isSettled) {
        isSettled = true
        clearTimeout(timer)
      }
      openWaiting(state, connection)
      if (!hasOpened(connection)) return
      state.failures = 0
      state.failure = undefined
    },
    draining() {
      replace(state, connection, { kind: 'lost', reason: 'the server closes the connection' })
    },
    closed(_, end) {
      clearTimeout(timer)
      state.connections.delete(connection)
      if (isSettled) replace(state, connection, end)
      else {
        state.current = undefined
        fail(state, end)
      }
    },
  })
  state.current = connection
  state.connections.add(connection)
}

/** Continues on another connection, with a delay if this one has opened no stream. */
function replace(state: State, connection: Connection, end: StreamEnd): void {
  if (state.current !== connection) return
  state.current = undefined
  if (state.waiting.size === 0 || state.isClosed) return
  if (hasOpened(connection)) connect(state)
  else fail(state, end)
}

function hasOpened({ nextId }: Connection): boolean {
  return nextId > 1
}

function openWaiting({ waiting }: State, connection: Connection): void {
  for (const stream of waiting) {
    if (!hasCapacity(connection)) return
    waiting.delete(stream)
    if (stream.phase === 'waiting') openStream(connection, stream)
  }
}

function fail(state: State, end: StreamEnd): void {
  const backOffMs = Math.min(firstBackOffMs * 2 ** state.failures, maxBackOffMs)
  state.failures = Math.min(state.failures + 1, 10)
  state.failure = { end, until: performance.now() + backOffMs }
  failWaiting(state, end)
}

function failWaiting({ waiting }: State, end: StreamEnd): void {
  const ended = [...waiting]
  waiting.clear()
  for (const stream of ended) endStream(stream, end)
}
