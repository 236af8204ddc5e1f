import { longestTimerMs } from '../../lib/duration.ts'
import type { GatewayError } from '../../lib/gateway-error.ts'
import type { PoolShare } from '../http-client/shared-limits.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import { abortCall, type Call, failCall } from './call.ts'
import {
  assign,
  type Connection,
  type ConnectionOptions,
  type ConnectionOwner,
  close,
  createConnection,
  release,
  sendCall,
} from './connection.ts'
import { callTimeout, connectFailed, connectionLost } from './errors.ts'
import type { OpenedSocket, Opening, OpenSocket } from './open-socket.ts'

/** Connections to one origin with equal settings, and the calls that wait for one. */
export type Origin = {
  /** Value of the `host` field. */
  readonly host: string
  /** Used since the last check for unused origins. */
  used: boolean
  /** Counts a call; false at the limit of all data planes. */
  begin(): boolean
  /** Sends a call on a connection, or stores it in the queue. */
  send(call: Call): void
  /** Ends a call with an error. */
  abort(call: Call, error: GatewayError): void
  /** Reports the end of a call. */
  over(): void
  isBusy(): boolean
  closeIdle(): void
  /** Closes all connections; calls in flight complete. */
  close(): Promise<void>
  /** Closes all connections; calls in flight fail. */
  destroy(): Promise<void>
  left(): void
}

export type OriginOptions = {
  readonly host: string
  readonly maxConnections: number
  /** Limits in all data planes. */
  readonly share: PoolShare
  /** Meter of active calls. */
  readonly meter: AdmissionMeter
  readonly openSocket: OpenSocket
  readonly connection: ConnectionOptions
}

/** Connections and waiting calls of an origin. */
type Pool = {
  readonly options: OriginOptions
  readonly owner: ConnectionOwner
  readonly connections: Set<Connection>
  /** Attempts to connect, by the calls that they were started for. */
  readonly opening: Map<Call, Opening>
  readonly idle: Connection[]
  readonly queue: Set<Call>
  isClosing: boolean
}

export function createOrigin(options: OriginOptions): Origin {
  const { host, share, meter } = options
  const ended = Promise.withResolvers<void>()
  const pool: Pool = {
    options,
    owner: {
      available: (connection) => makeAvailable(pool, connection),
      closed: (connection) => forget(pool, connection),
      unsent: (call) => acquire(pool, call),
      // Other kept-alive connections may be closed as well.
      repeat: (call) => openOrQueue(pool, call),
    },
    connections: new Set(),
    opening: new Map(),
    idle: [],
    queue: new Set(),
    isClosing: false,
  }
  /** Calls of this data plane. */
  let active = 0
  const origin: Origin = {
    host,
    used: true,
    begin() {
      if (!share.calls.begin()) return false
      active += 1
      meter.changed(1)
      return true
    },
    send: (call) => acquire(pool, call),
    abort: (call, error) => abort(pool, call, error),
    over() {
      active -= 1
      share.calls.end()
      meter.changed(-1)
      if (pool.isClosing && active === 0) ended.resolve()
    },
    isBusy: () => active > 0,
    closeIdle() {
      for (const unused of pool.idle.splice(0)) close(unused)
    },
    close() {
      pool.isClosing = true
      origin.closeIdle()
      if (active === 0) ended.resolve()
      return ended.promise
    },
    destroy() {
      const closed = origin.close()
      endCalls(pool)
      return closed
    },
    left: share.end,
  }
  return origin
}

function acquire(pool: Pool, call: Call): void {
  const free = pool.idle.pop()
  if (free !== undefined) assign(free, call)
  else openOrQueue(pool, call)
}

function abort(pool: Pool, call: Call, error: GatewayError): void {
  pool.queue.delete(call)
  if (stopWaiting(pool, call)) serveQueue(pool)
  abortCall(call, error)
}

function openOrQueue(pool: Pool, call: Call): void {
  const limitMs = Math.min(pool.options.connection.firstByteTimeoutMs, longestTimerMs)
  call.timer ??= setTimeout(() => abort(pool, call, callTimeout()), limitMs)
  if (hasRoom(pool)) open(pool, call)
  else pool.queue.add(call)
}

function hasRoom({ connections, opening, options }: Pool): boolean {
  return connections.size + opening.size < options.maxConnections
}

function open(pool: Pool, call: Call): void {
  const opening = pool.options.openSocket((opened) => {
    pool.opening.delete(call)
    receive(pool, call, opened)
  })
  pool.opening.set(call, opening)
}

function receive(pool: Pool, call: Call, opened: OpenedSocket): void {
  if (opened.kind === 'failed') {
    failCall(call, connectFailed(opened.error))
    serveQueue(pool)
    return
  }
  const connection = createConnection(opened.socket, pool.options.connection, pool.owner)
  pool.connections.add(connection)
  if (call.isOver) release(connection)
  else sendCall(connection, call)
}

function makeAvailable(pool: Pool, connection: Connection): void {
  const next = takeFirst(pool.queue) ?? takeWaiting(pool)
  if (next !== undefined) assign(connection, next)
  else if (pool.isClosing) close(connection)
  else pool.idle.push(connection)
}

/** Takes the first call whose connection waits for the end of one in another data plane. */
function takeWaiting(pool: Pool): Call | undefined {
  if (pool.options.share.permits === undefined) return undefined
  for (const call of pool.opening.keys()) if (stopWaiting(pool, call)) return call
  return undefined
}

/** Abandons the connection of a call if it is not started yet; returns whether it was abandoned. */
function stopWaiting({ opening }: Pool, call: Call): boolean {
  const attempt = opening.get(call)
  if (attempt?.isWaiting() !== true) return false
  attempt.abandon()
  return opening.delete(call)
}

function forget(pool: Pool, connection: Connection): void {
  pool.connections.delete(connection)
  const index = pool.idle.indexOf(connection)
  if (index !== -1) pool.idle.splice(index, 1)
  serveQueue(pool)
}

function serveQueue(pool: Pool): void {
  while (hasRoom(pool)) {
    const next = takeFirst(pool.queue)
    if (next === undefined) return
    open(pool, next)
  }
}

function endCalls({ queue, opening, connections }: Pool): void {
  const cause = new Error('the HTTP client is closed')
  for (const call of queue) failCall(call, connectFailed(cause))
  queue.clear()
  for (const [call, attempt] of opening) {
    attempt.abandon()
    failCall(call, connectFailed(cause))
  }
  opening.clear()
  for (const connection of connections) {
    const { call } = connection
    close(connection)
    if (call !== undefined) failCall(call, connectionLost(cause))
  }
}

function takeFirst(calls: Set<Call>): Call | undefined {
  for (const call of calls) {
    calls.delete(call)
    return call
  }
  return undefined
}
