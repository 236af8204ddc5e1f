import {
  type Connection,
  completeStream,
  consume,
  type Http2Stream,
  removeStream,
  schedule,
  sendQueues,
} from './connection-state.ts'
import {
  defaultWindow,
  errorCodes,
  type Frame,
  flags,
  frameTypes,
  Http2Violation,
  maxFrameBytes,
  maxWindow,
  settingIds,
} from './frames.ts'

/** Receive window of a connection. The windows of its streams bound what is stored. */
export const connectionWindow = 1024 * 1024
/** Limit of the fields of a header block, and of its encoded bytes. */
export const maxListBytes = 64 * 1024
/** Limit of the frames of a header block. */
const maxHeaderFrames = 16
/** Limit of frames without progress of a stream, one after the other, within a period. */
const maxIdleFrames = 1_000
const idlePeriodMs = 10_000
/** Limit of bytes that the server has not read when it sends a frame that demands a response. */
const maxUnreadBytes = 1024 * 1024

/** Processes a frame. Throws `Http2Violation` or `RangeError`, which end the connection. */
export function receiveFrame(connection: Connection, frame: Frame): void {
  if (connection.state === 'closed') return
  const { type } = frame
  if (connection.partialHeaders !== undefined && type !== frameTypes.continuation)
    throw violation('a header block of the server is interrupted')
  receiveTypes[type]?.(connection, frame)
  if (type >= receiveTypes.length) countIdle(connection)
}

/** By frame type. */
const receiveTypes: readonly ((connection: Connection, frame: Frame) => void)[] = [
  receiveData,
  receiveHeaders,
  countIdle,
  receiveReset,
  receiveSettings,
  () => {
    throw violation('the server pushes a response')
  },
  receivePing,
  receiveGoAway,
  receiveWindowUpdate,
  continueHeaders,
]

function violation(message: string): Http2Violation {
  return new Http2Violation(errorCodes.protocol, message)
}

function countIdle(connection: Connection): void {
  if (connection.receivedAt - connection.idleSince >= idlePeriodMs) {
    connection.idleSince = connection.receivedAt
    connection.idleFrames = 0
  }
  connection.idleFrames += 1
  if (connection.idleFrames <= maxIdleFrames) return
  throw new Http2Violation(errorCodes.enhanceYourCalm, 'the server sends too many control frames')
}

/** Counts a frame of an ended stream. */
function countLate(connection: Connection): void {
  if (connection.lateFrames > 0) connection.lateFrames -= 1
  else countIdle(connection)
}

/** Counts a frame that demands a response. */
function countDemand(connection: Connection): void {
  countIdle(connection)
  const { socket, writer } = connection
  if (socket.writableLength + writer.pendingBytes <= maxUnreadBytes) return
  throw new Http2Violation(errorCodes.enhanceYourCalm, 'the server does not read')
}

/** The stream of a frame; undefined if it has ended. */
function streamOf(connection: Connection, streamId: number): Http2Stream | undefined {
  const stream = connection.streams.get(streamId)
  if (stream !== undefined) return stream
  if (streamId % 2 === 0 || streamId >= connection.nextId)
    throw violation('the server sent a frame of an unknown stream')
  return undefined
}

/** Payload without padding and, in a frame of headers, without priority. */
function contentOf({ payload, flags: set, type }: Frame): Buffer {
  const isPadded = (set & flags.padded) !== 0
  const hasPriority = type === frameTypes.headers && (set & flags.priority) !== 0
  if (!isPadded && !hasPriority) return payload
  const padding = isPadded ? (payload[0] ?? 0) : 0
  const start = (isPadded ? 1 : 0) + (hasPriority ? 5 : 0)
  const end = payload.length - padding
  if (end < start) throw violation('a frame of the server has invalid padding')
  return payload.subarray(start, end)
}

function receiveData(connection: Connection, frame: Frame): void {
  const { payload, streamId } = frame
  const isLast = (frame.flags & flags.endStream) !== 0
  const stream = streamOf(connection, streamId)
  consumeOfConnection(connection, payload.length)
  if (stream === undefined) {
    countLate(connection)
    return
  }
  stream.receiveWindow -= payload.length
  if (stream.receiveWindow < 0)
    throw new Http2Violation(errorCodes.flowControl, 'the server exceeds the window of a stream')
  const content = contentOf(frame)
  if (content.length > 0 || isLast) connection.idleFrames = 0
  else countIdle(connection)
  if (isLast) completeStream(connection, stream)
  else if (content.length < payload.length) consume(stream, payload.length - content.length)
  if (content.length > 0 || isLast) stream.receiver.onData(content, isLast)
}

function consumeOfConnection(connection: Connection, bytes: number): void {
  connection.receiveWindow -= bytes
  if (connection.receiveWindow < 0)
    throw new Http2Violation(errorCodes.flowControl, 'the server exceeds the window of the connection')
  connection.consumed += bytes
  if (connection.consumed < connectionWindow / 2) return
  connection.writer.windowUpdate(0, connection.consumed)
  connection.receiveWindow += connection.consumed
  connection.consumed = 0
  schedule(connection)
}

function receiveHeaders(connection: Connection, frame: Frame): void {
  const { streamId } = frame
  const content = contentOf(frame)
  const isLast = (frame.flags & flags.endStream) !== 0
  if ((frame.flags & flags.endHeaders) !== 0) endHeaders(connection, { streamId, isLast }, content)
  else connection.partialHeaders = { streamId, isLast, parts: [Buffer.from(content)], bytes: content.length }
}

function continueHeaders(connection: Connection, { streamId, payload, flags: set }: Frame): void {
  const { partialHeaders } = connection
  if (partialHeaders?.streamId !== streamId) throw violation('the server continues an unknown header block')
  const { parts } = partialHeaders
  parts.push(Buffer.from(payload))
  partialHeaders.bytes += payload.length
  if (partialHeaders.bytes > maxListBytes || parts.length > maxHeaderFrames)
    throw new Http2Violation(errorCodes.enhanceYourCalm, 'a header block of the server is too large')
  if ((set & flags.endHeaders) === 0) return
  connection.partialHeaders = undefined
  endHeaders(connection, partialHeaders, Buffer.concat(parts))
}

function endHeaders(
  connection: Connection,
  { streamId, isLast }: { readonly streamId: number; readonly isLast: boolean },
  block: Buffer,
): void {
  // Blocks of ended streams change the table, too.
  const fields = connection.decoder.decode(block)
  const stream = streamOf(connection, streamId)
  if (stream === undefined) {
    countLate(connection)
    return
  }
  connection.idleFrames = 0
  if (isLast) completeStream(connection, stream)
  stream.receiver.onHeaders(fields, isLast)
}

function receiveReset(connection: Connection, { streamId, payload }: Frame): void {
  expectLength(payload, 4)
  const stream = streamOf(connection, streamId)
  if (stream === undefined) {
    countLate(connection)
    return
  }
  countIdle(connection)
  const code = payload.readUInt32BE(0)
  removeStream(connection, stream)
  stream.receiver.onEnd(
    code === errorCodes.refusedStream
      ? { kind: 'unprocessed', reason: 'the server refused the stream' }
      : { kind: 'reset', code },
  )
}

function expectLength({ length }: Buffer, expected: number): void {
  if (length !== expected)
    throw new Http2Violation(errorCodes.frameSize, 'a frame of the server has a wrong size')
}

function expectConnection({ streamId }: Frame): void {
  if (streamId !== 0) throw violation('a frame of the connection has a stream')
}

function receiveSettings(connection: Connection, frame: Frame): void {
  const { payload } = frame
  expectConnection(frame)
  if ((frame.flags & flags.ack) !== 0) {
    expectLength(payload, 0)
    countIdle(connection)
    return
  }
  if (payload.length % 6 !== 0) expectLength(payload, 0)
  countDemand(connection)
  for (let at = 0; at < payload.length; at += 6)
    applySetting(connection, payload.readUInt16BE(at), payload.readUInt32BE(at + 2))
  connection.writer.settingsAck()
  schedule(connection)
  if (connection.state === 'settling') connection.state = 'open'
  sendQueues(connection)
  connection.owner.available(connection)
}

function applySetting(connection: Connection, id: number, value: number): void {
  if (id === settingIds.maxConcurrentStreams) connection.maxStreams = value
  else if (id === settingIds.maxFrameSize) {
    if (value < maxFrameBytes || value >= 2 ** 24) throw violation('a setting of the server is invalid')
  } else if (id === settingIds.initialWindowSize) {
    if (value > maxWindow)
      throw new Http2Violation(errorCodes.flowControl, 'a setting of the server is invalid')
    const change = value - connection.initialWindow
    connection.initialWindow = value
    for (const stream of connection.streams.values()) growWindow(stream, change)
  }
}

function growWindow(of: { sendWindow: number }, bytes: number): void {
  of.sendWindow += bytes
  if (of.sendWindow > maxWindow)
    throw new Http2Violation(errorCodes.flowControl, 'a window of the server is too large')
}

function receivePing(connection: Connection, frame: Frame): void {
  const { payload } = frame
  expectConnection(frame)
  expectLength(payload, 8)
  countDemand(connection)
  if ((frame.flags & flags.ack) !== 0) return
  connection.writer.ping(payload, true)
  schedule(connection)
}

/** RFC 9113 section 6.8: streams above the last one were not processed. */
function receiveGoAway(connection: Connection, frame: Frame): void {
  const { payload } = frame
  expectConnection(frame)
  if (payload.length < 8) expectLength(payload, 8)
  countIdle(connection)
  const lastId = payload.readUInt32BE(0) & maxWindow
  if (connection.state === 'open') {
    connection.state = 'draining'
    connection.owner.draining(connection)
  }
  for (const [id, stream] of connection.streams) {
    if (id <= lastId) continue
    removeStream(connection, stream)
    stream.receiver.onEnd({ kind: 'unprocessed', reason: 'the server closes the connection' })
  }
  // Closed at the end of the turn if no stream is left.
  schedule(connection)
}

function receiveWindowUpdate(connection: Connection, { streamId, payload }: Frame): void {
  expectLength(payload, 4)
  const bytes = payload.readUInt32BE(0) & maxWindow
  if (bytes === 0) throw violation('the server enlarges a window by 0')
  const of = streamId === 0 ? connection : streamOf(connection, streamId)
  if (of === undefined) {
    countLate(connection)
    return
  }
  countIdle(connection)
  growWindow(of, bytes)
  sendQueues(connection)
}

/** Initial values of a connection. */
export const initialWindows = { sendWindow: defaultWindow, receiveWindow: connectionWindow }
