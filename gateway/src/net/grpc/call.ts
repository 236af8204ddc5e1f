import { longestTimerMs } from '../../lib/duration.ts'
import { consume, type Http2Stream, sendBytes } from '../http2-client/connection-state.ts'
import type { Http2Origin } from '../http2-client/origin.ts'
import type { StreamReceiver } from '../http2-client/stream.ts'
import { createMessageReader, frameMessage, type MessageReader } from './messages.ts'
import type { Metadata, RequestHead } from './request-head.ts'
import { failed, type GrpcStatus, readHead, readTrailers, statusCodes, statusOfEnd } from './status.ts'

/** Result of a unary call. */
export type CallResult =
  | { readonly kind: 'ok'; readonly message: Uint8Array }
  | (GrpcStatus & { readonly kind: 'failed' })

export type UnaryCall = {
  readonly origin: () => Http2Origin
  readonly head: RequestHead
  readonly message: Uint8Array
  readonly metadata: Metadata
  readonly deadlineMs: number
  readonly done: (result: CallResult) => void
}

const maxMessageBytes = 64 * 1024
const maxAttempts = 5
const retryDelayMs = 10

type State = {
  readonly call: UnaryCall
  readonly endsAt: number
  readonly frame: Uint8Array
  readonly reader: MessageReader
  timer: NodeJS.Timeout | undefined
  retry: NodeJS.Timeout | undefined
  /** The attempt in progress, and its origin. */
  stream: Http2Stream | undefined
  origin: Http2Origin | undefined
  attempts: number
  hasHead: boolean
  answer: Uint8Array | undefined
  isOver: boolean
}

/** Calls a method. Streams that the server has not processed are repeated until the deadline. */
export function startCall(call: UnaryCall): void {
  const deadlineMs = Math.max(1, Math.min(call.deadlineMs, longestTimerMs))
  const state: State = {
    call,
    endsAt: performance.now() + deadlineMs,
    frame: frameMessage(call.message),
    reader: createMessageReader(maxMessageBytes),
    timer: undefined,
    retry: undefined,
    stream: undefined,
    origin: undefined,
    attempts: 0,
    hasHead: false,
    answer: undefined,
    isOver: false,
  }
  state.timer = setTimeout(expire, deadlineMs, state)
  attempt(state, deadlineMs)
}

function expire(state: State): void {
  finish(state, failed(statusCodes.deadlineExceeded, 'deadline exceeded'))
}

function attempt(state: State, deadlineMs: number): void {
  const { call } = state
  const block = call.head.encode(deadlineMs, call.metadata)
  if ('kind' in block) {
    finish(state, block)
    return
  }
  state.attempts += 1
  state.origin = call.origin()
  state.stream = state.origin.start(block, createReceiver(state))
  sendBytes(state.stream, state.frame, true)
}

function finish(state: State, result: CallResult): void {
  if (state.isOver) return
  state.isOver = true
  clearTimeout(state.timer)
  clearTimeout(state.retry)
  if (state.stream !== undefined) state.origin?.cancel(state.stream)
  state.call.done(result)
}

function createReceiver(state: State): StreamReceiver {
  return {
    onHeaders(fields, isLast) {
      if (!state.hasHead) {
        const read = readHead(fields, isLast)
        if (read.kind === 'end') conclude(state, read.status)
        else state.hasHead = read.kind === 'head'
      } else if (isLast) conclude(state, readTrailers(fields))
      else finish(state, failed(statusCodes.internal, 'the response has two heads'))
    },
    onData(bytes, isLast) {
      if (state.hasHead) receive(state, bytes)
      else finish(state, failed(statusCodes.internal, 'the response has no head'))
      if (isLast) finish(state, failed(statusCodes.unknown, 'the response has no gRPC status'))
    },
    onSent() {},
    onEnd(end) {
      const isRepeatable = end.kind === 'unprocessed' && !state.hasHead && state.attempts < maxAttempts
      if (isRepeatable && performance.now() + retryDelayMs < state.endsAt)
        state.retry = setTimeout(() => attempt(state, state.endsAt - performance.now()), retryDelayMs)
      else finish(state, statusOfEnd(end))
    },
  }
}

function receive(state: State, bytes: Buffer): void {
  const { reader, stream } = state
  for (let at = 0; at < bytes.length && !state.isOver; ) {
    at = reader.read(bytes, at)
    const message = reader.take()
    if (message === undefined) continue
    if ('kind' in message) finish(state, message)
    else if (state.answer !== undefined)
      finish(state, failed(statusCodes.internal, 'the response has several messages'))
    else state.answer = message
  }
  if (stream !== undefined) consume(stream, bytes.length)
}

/** Ends the call with the status of the server. */
function conclude(state: State, status: GrpcStatus): void {
  const { answer, reader } = state
  if (status.kind === 'failed') finish(state, status)
  else if (answer === undefined || reader.isWithin())
    finish(state, failed(statusCodes.internal, 'the response has no message'))
  else finish(state, { kind: 'ok', message: answer })
}
