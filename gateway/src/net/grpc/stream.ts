import type { GrpcStream, GrpcStreamHandler } from '../grpc-stream.ts'
import { consume, type Http2Stream, sendBytes } from '../http2-client/connection-state.ts'
import type { Http2Origin } from '../http2-client/origin.ts'
import type { StreamReceiver } from '../http2-client/stream.ts'
import { createMessageReader, frameMessage, type MessageReader } from './messages.ts'
import type { Metadata, RequestHead } from './request-head.ts'
import { failed, type GrpcStatus, readHead, readTrailers, statusCodes, statusOfEnd } from './status.ts'

export type StreamOptions = {
  readonly origin: Http2Origin
  readonly head: RequestHead
  readonly metadata: Metadata
  readonly maxMessageBytes: number
}

/** Limit of bytes on their way to the transport, above which `send` reports a slow server. */
const maxUnsentBytes = 64 * 1024
/** Limit of messages that are stored until the server responds, to repeat an unprocessed stream. */
const maxReplayBytes = 64 * 1024
const maxAttempts = 5
const retryDelayMs = 10

type State = {
  readonly options: StreamOptions
  readonly handler: GrpcStreamHandler
  readonly block: Uint8Array
  readonly reader: MessageReader
  /** Undefined before a repetition. */
  stream: Http2Stream | undefined
  retry: NodeJS.Timeout | undefined
  attempts: number
  /** Sent messages while the stream may be repeated. */
  replay: Uint8Array[] | undefined
  replayBytes: number
  unsentBytes: number
  isFull: boolean
  isHalfClosed: boolean
  hasHead: boolean
  /** Requested messages. */
  wanted: number
  isDelivering: boolean
  /** Received bytes behind the requested messages. */
  readonly unread: Buffer[]
  /** Status of the server while messages are unread. */
  status: GrpcStatus | undefined
  isOver: boolean
}

/** Starts a stream. Streams that the server has not processed are repeated before its first response. */
export function startStream(options: StreamOptions, handler: GrpcStreamHandler): GrpcStream {
  const encoded = options.head.encode(undefined, options.metadata)
  const state: State = {
    options,
    handler,
    block: 'kind' in encoded ? new Uint8Array() : encoded,
    reader: createMessageReader(options.maxMessageBytes),
    stream: undefined,
    retry: undefined,
    attempts: 0,
    replay: [],
    replayBytes: 0,
    unsentBytes: 0,
    isFull: false,
    isHalfClosed: false,
    hasHead: false,
    wanted: 0,
    isDelivering: false,
    unread: [],
    status: undefined,
    isOver: false,
  }
  if ('kind' in encoded) queueMicrotask(() => end(state, encoded))
  else attempt(state)
  return {
    send: (message) => send(state, message),
    read() {
      state.wanted += 1
      deliver(state)
    },
    halfClose() {
      if (state.isOver || state.isHalfClosed) return
      state.isHalfClosed = true
      if (state.stream !== undefined) sendBytes(state.stream, undefined, true)
    },
    cancel: () => close(state),
  }
}

function attempt(state: State): void {
  const { options, block, replay = [], isHalfClosed } = state
  state.attempts += 1
  const stream = options.origin.start(block, createReceiver(state))
  state.stream = stream
  for (const frame of replay) sendBytes(stream, frame, false)
  if (isHalfClosed) sendBytes(stream, undefined, true)
  // The transport does not report bytes that left at once.
  if (state.isFull) queueMicrotask(() => hasLeft(stream) && sent(state))
}

/** Reports that no bytes wait for the transport. */
function sent(state: State): void {
  state.unsentBytes = 0
  if (!state.isFull || state.isOver) return
  state.isFull = false
  state.handler.onDrain()
}

function hasLeft({ phase, queue }: Http2Stream): boolean {
  return phase === 'open' && queue.length === 0
}

function send(state: State, message: Uint8Array): boolean {
  const { stream, isOver, isHalfClosed } = state
  if (isOver || isHalfClosed) return true
  const frame = frameMessage(message)
  retain(state, frame)
  if (stream !== undefined) sendBytes(stream, frame, false)
  const isSent = stream !== undefined && hasLeft(stream)
  state.unsentBytes = isSent ? 0 : state.unsentBytes + frame.byteLength
  state.isFull ||= state.unsentBytes >= maxUnsentBytes
  return !state.isFull
}

/** Stores a frame for a repetition, as long as one is possible. */
function retain(state: State, frame: Uint8Array): void {
  if (state.replay === undefined) return
  state.replayBytes += frame.byteLength
  // Before the connection is open, the stream stores them anyway.
  if (state.replayBytes > maxReplayBytes && state.stream?.phase === 'open') state.replay = undefined
  else state.replay.push(frame)
}

function close(state: State): void {
  if (state.isOver) return
  state.isOver = true
  clearTimeout(state.retry)
  state.replay = undefined
  state.unread.length = 0
  if (state.stream !== undefined) state.options.origin.cancel(state.stream)
}

function end(state: State, status: GrpcStatus): void {
  if (state.isOver) return
  close(state)
  state.handler.onEnd(status)
}

function createReceiver(state: State): StreamReceiver {
  return {
    onHeaders(fields, isLast) {
      if (!state.hasHead) {
        const read = readHead(fields, isLast)
        if (read.kind === 'informational') return
        state.hasHead = true
        state.replay = undefined
        if (read.kind === 'end') conclude(state, read.status)
      } else if (isLast) conclude(state, readTrailers(fields))
      else end(state, failed(statusCodes.internal, 'the response has two heads'))
    },
    onData(bytes, isLast) {
      if (state.hasHead) receive(state, bytes)
      else end(state, failed(statusCodes.internal, 'the response has no head'))
      if (isLast) end(state, failed(statusCodes.unknown, 'the response has no gRPC status'))
    },
    onSent: () => sent(state),
    onEnd(ended) {
      const isRepeatable = ended.kind === 'unprocessed' && state.replay !== undefined
      if (!isRepeatable || state.attempts >= maxAttempts) {
        end(state, statusOfEnd(ended))
        return
      }
      state.stream = undefined
      state.retry = setTimeout(attempt, retryDelayMs, state)
    },
  }
}

/** Ends the stream: at once with a failure, otherwise behind the unread messages. */
function conclude(state: State, status: GrpcStatus): void {
  if (status.kind === 'failed') {
    end(state, status)
    return
  }
  state.status = status
  deliver(state)
}

function receive(state: State, bytes: Buffer): void {
  const { unread } = state
  if (state.isOver) return
  unread.push(bytes)
  deliver(state)
  const rest = unread.at(-1)
  // A part of the received bytes would retain all of them.
  if (rest?.buffer === bytes.buffer) unread[unread.length - 1] = Buffer.from(rest)
}

/** Delivers as many messages as are requested, then the status of the server. */
function deliver(state: State): void {
  // Receivers of messages request further ones.
  if (state.isDelivering) return
  state.isDelivering = true
  while (state.wanted > 0 && !state.isOver && readMessage(state));
  state.isDelivering = false
  const { status, unread, reader } = state
  if (status === undefined || unread.length > 0) return
  end(state, reader.isWithin() ? failed(statusCodes.internal, 'the response ends within a message') : status)
}

/** Reads up to the end of a message. Returns false without received bytes. */
function readMessage(state: State): boolean {
  const { unread, reader, handler, stream } = state
  const [bytes] = unread
  if (bytes === undefined) return false
  const position = reader.read(bytes, 0)
  if (stream !== undefined) consume(stream, position)
  if (position === bytes.length) unread.shift()
  else unread[0] = bytes.subarray(position)
  const message = reader.take()
  if (message === undefined) return true
  if ('kind' in message) {
    end(state, message)
    return false
  }
  state.wanted -= 1
  handler.onMessage(message)
  return true
}
