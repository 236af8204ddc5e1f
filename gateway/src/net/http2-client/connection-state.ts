import type { Socket } from 'node:net'
import type { Turns } from '../../lib/scheduling/turns.ts'
import type { FrameWriter } from './frame-writer.ts'
import { defaultWindow, errorCodes, maxFrameBytes } from './frames.ts'
import type { HeaderDecoder } from './hpack/hpack.ts'
import type { StreamEnd, StreamReceiver } from './stream.ts'

/** A connection to a server. */
export type Connection = {
  readonly socket: Socket
  readonly writer: FrameWriter
  readonly decoder: HeaderDecoder
  readonly turns: Turns
  readonly owner: ConnectionOwner
  /** `settling`: before the settings of the server; `draining`: without new streams. */
  state: 'settling' | 'open' | 'draining' | 'closed'
  readonly streams: Map<number, Http2Stream>
  /** Streams with bytes in their queue. */
  readonly sending: Set<Http2Stream>
  nextId: number
  /** Settings of the server. */
  maxStreams: number
  initialWindow: number
  sendWindow: number
  receiveWindow: number
  /** Received bytes that the server has not been informed of. */
  consumed: number
  /** A header block that continues in further frames. */
  partialHeaders: PartialHeaders | undefined
  /** Frames without progress of a stream, since `idleSince`. */
  idleFrames: number
  idleSince: number
  /** Frames of ended streams that do not count as idle: the server sent them before a reset arrived. */
  lateFrames: number
  isScheduled: boolean
  /** Times of `performance.now()`. */
  receivedAt: number
  openedAt: number
  pingedAt: number | undefined
  afterReads(): void
}

export type PartialHeaders = {
  readonly streamId: number
  readonly isLast: boolean
  readonly parts: Buffer[]
  bytes: number
}

/** Receiver of changes of a connection. */
export type ConnectionOwner = {
  /** Streams may be opened. */
  available(connection: Connection): void
  /** No further stream may be opened. */
  draining(connection: Connection): void
  /** The connection is closed. Called once. */
  closed(connection: Connection, end: StreamEnd & { kind: 'lost' }): void
}

/** A request and its response. `waiting` for a connection until it is `open`. */
export type Http2Stream = {
  readonly receiver: StreamReceiver
  /** Encoded header fields of the request. */
  readonly block: Uint8Array
  phase: 'waiting' | 'open' | 'over'
  connection: Connection | undefined
  id: number
  /** Bytes that the windows do not permit yet; those of the first before `sentOfFirst` have left. */
  readonly queue: Uint8Array[]
  sentOfFirst: number
  /** The queue ends the request. */
  endsAfterQueue: boolean
  hasSentEnd: boolean
  sendWindow: number
  receiveWindow: number
  /** Consumed bytes that the server has not been informed of. */
  consumed: number
}

export function createStream(block: Uint8Array, receiver: StreamReceiver): Http2Stream {
  return {
    receiver,
    block,
    phase: 'waiting',
    connection: undefined,
    id: 0,
    queue: [],
    sentOfFirst: 0,
    endsAfterQueue: false,
    hasSentEnd: false,
    sendWindow: 0,
    receiveWindow: defaultWindow,
    consumed: 0,
  }
}

/** Limit of bytes in the buffer of the socket, above which queues wait. */
const maxSocketBytes = 128 * 1024

/** Whether a stream may be opened. */
export function hasCapacity({ state, streams, maxStreams }: Connection): boolean {
  return state === 'open' && streams.size < maxStreams
}

/** Sends the request of a waiting stream. */
export function openStream(connection: Connection, stream: Http2Stream): void {
  stream.phase = 'open'
  stream.connection = connection
  stream.id = connection.nextId
  stream.sendWindow = connection.initialWindow
  connection.nextId += 2
  connection.streams.set(stream.id, stream)
  connection.openedAt = performance.now()
  connection.writer.headers(stream.id, stream.block, false)
  schedule(connection)
  const isQueued = isPending(stream)
  send(connection, stream)
  if (isQueued && !isPending(stream)) stream.receiver.onSent()
  if (connection.nextId > maxStreamId && connection.state === 'open') {
    connection.state = 'draining'
    connection.owner.draining(connection)
  }
}

/** RFC 9113 section 5.1.1. */
const maxStreamId = 2 ** 31 - 1

/** Sends bytes as far as the windows permit, and the rest later. */
export function sendBytes(stream: Http2Stream, bytes: Uint8Array | undefined, isLast: boolean): void {
  if (stream.phase === 'over' || stream.endsAfterQueue) return
  if (bytes !== undefined) stream.queue.push(bytes)
  stream.endsAfterQueue = isLast
  if (stream.connection !== undefined) send(stream.connection, stream)
}

function send(connection: Connection, stream: Http2Stream): void {
  while (sendFrame(connection, stream));
  if (stream.phase === 'open' && isPending(stream)) connection.sending.add(stream)
}

/** Continues the queues in turns of one frame, after a window has grown or the socket has drained. */
export function sendQueues(connection: Connection): void {
  const { sending } = connection
  let isProgressing = sending.size > 0
  while (isProgressing) {
    isProgressing = false
    for (const stream of [...sending]) {
      if (sendFrame(connection, stream)) isProgressing = true
      if (stream.phase === 'open' && isPending(stream)) continue
      sending.delete(stream)
      if (stream.phase === 'open') stream.receiver.onSent()
    }
  }
}

function isPending({ queue, endsAfterQueue, hasSentEnd }: Http2Stream): boolean {
  return queue.length > 0 || (endsAfterQueue && !hasSentEnd)
}

/** Sends one frame of data. Returns false if there is none, or the windows or the socket do not permit it. */
function sendFrame(connection: Connection, stream: Http2Stream): boolean {
  const { writer } = connection
  if (stream.phase !== 'open' || stream.hasSentEnd) return false
  const [first] = stream.queue
  if (first === undefined) {
    if (!stream.endsAfterQueue) return false
    writer.data(stream.id, noBytes, true)
    stream.hasSentEnd = true
    schedule(connection)
    return true
  }
  const rest = first.byteLength - stream.sentOfFirst
  const length = Math.min(rest, stream.sendWindow, connection.sendWindow, maxFrameBytes)
  if ((length <= 0 && rest > 0) || !hasRoom(connection)) return false
  const bytes =
    length === first.byteLength ? first : first.subarray(stream.sentOfFirst, stream.sentOfFirst + length)
  stream.sentOfFirst += length
  if (length === rest) {
    stream.queue.shift()
    stream.sentOfFirst = 0
  }
  const isLast = stream.endsAfterQueue && stream.queue.length === 0
  stream.hasSentEnd = isLast
  stream.sendWindow -= length
  connection.sendWindow -= length
  connection.idleFrames = 0
  writer.data(stream.id, bytes, isLast)
  schedule(connection)
  return true
}

const noBytes = new Uint8Array()

function hasRoom({ socket, writer }: Connection): boolean {
  return socket.writableLength + writer.pendingBytes < maxSocketBytes
}

/** Writes the frames at the end of the turn. */
export function schedule(connection: Connection): void {
  if (connection.isScheduled) return
  connection.isScheduled = true
  connection.turns.schedule(connection)
}

/** Permits the server to send as many bytes as the receiver has processed. */
export function consume(stream: Http2Stream, bytes: number): void {
  const { connection } = stream
  if (stream.phase !== 'open' || connection === undefined) return
  stream.consumed += bytes
  if (stream.consumed < defaultWindow / 2) return
  connection.writer.windowUpdate(stream.id, stream.consumed)
  stream.receiveWindow += stream.consumed
  stream.consumed = 0
  schedule(connection)
}

/** Frames of a stream that may be on their way when it is reset, and limit of their sum. */
const lateFramesOfStream = 32
const maxLateFrames = 100_000

/** Ends a stream of the client. Its receiver is not called. */
export function resetStream(stream: Http2Stream, code: number = errorCodes.cancel): void {
  const { connection, phase } = stream
  if (phase !== 'open' || connection === undefined) {
    stream.phase = 'over'
    return
  }
  connection.writer.reset(stream.id, code)
  connection.lateFrames = Math.min(connection.lateFrames + lateFramesOfStream, maxLateFrames)
  schedule(connection)
  removeStream(connection, stream)
}

/** Ends a stream after the last frame of the server. The rest of the request is not sent. */
export function completeStream(connection: Connection, stream: Http2Stream): void {
  if (stream.hasSentEnd) removeStream(connection, stream)
  else resetStream(stream)
}

/** Removes a stream that has ended, so that another may be opened. */
export function removeStream(connection: Connection, stream: Http2Stream): void {
  stream.phase = 'over'
  stream.queue.length = 0
  connection.sending.delete(stream)
  connection.streams.delete(stream.id)
  if (connection.state === 'draining') {
    if (connection.streams.size === 0) schedule(connection)
  } else connection.owner.available(connection)
}

/** Closes the connection. Its streams end. */
export function lose(connection: Connection, reason: string, cause?: unknown): void {
  if (connection.state === 'closed') return
  const { socket, streams, owner } = connection
  connection.state = 'closed'
  socket.destroy()
  const end = { kind: 'lost', reason, cause } as const
  const ended = [...streams.values()]
  streams.clear()
  connection.sending.clear()
  owner.closed(connection, end)
  for (const stream of ended) {
    if (stream.phase === 'over') continue
    stream.phase = 'over'
    stream.queue.length = 0
    stream.receiver.onEnd(end)
  }
}
