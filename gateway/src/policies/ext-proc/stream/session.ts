import { messageOf } from '../../../lib/thrown.ts'
import type {
  GrpcStream,
  GrpcStreamEnd,
  GrpcStreamHandler,
  OpenGrpcStream,
} from '../../../net/grpc-stream.ts'
import { decodeMessage } from '../wire/decode.ts'
import type { Direction, ImmediateResponse, ProcessorMessage, StepResponse } from '../wire/messages.ts'

/** End of a session before the end of a message. */
export type SessionEnd =
  /** The processor ended the stream without errors and without pending responses. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'immediate'; readonly response: ImmediateResponse }
  /** The client disconnected. */
  | { readonly kind: 'cancelled' }

/** Receiver of the responses for one direction. */
export type Receiver = {
  /** False if full: the session reads no further message before `resume`. */
  receive(step: StepResponse, message: ProcessorMessage): boolean
  /** The processor has read the messages, after `send` returned false. */
  drained(): void
  ended(end: SessionEnd): void
  /** Whether a response is due. */
  isAwaiting(): boolean
}

/** The stream of one request to the processor. Opened with the first message. */
export type Session = {
  /** Undefined while messages are exchanged. */
  readonly end: SessionEnd | undefined
  attach(direction: Direction, receiver: Receiver): void
  /** Returns false if the processor reads slowly. */
  send(message: Uint8Array): boolean
  /** Continues after a receiver was full. */
  resume(): void
  /** Ends the session with a failure of the processor. */
  fail(reason: string): void
  /** Ends the session of a client that disconnected. */
  cancel(): void
  /** Ends the messages to the processor after the last one. The stream has a limited time to end. */
  finish(): void
}

export type SessionOptions = {
  readonly open: (handler: GrpcStreamHandler) => ReturnType<OpenGrpcStream>
  /** Counts a stream; false at the limit. */
  acquire(): boolean
  /** Called once per opened stream, at its end. */
  onOver(): void
  onEnded(end: SessionEnd): void
  onReceived(message: ProcessorMessage): void
}

/** Time for the processor to end the stream after the last message. */
const lingerMs = 1_000

/** Messages without a response, which nothing awaits. */
const maxIgnored = 16

type State = {
  readonly options: SessionOptions
  readonly receivers: Receiver[]
  readonly byDirection: Partial<Record<Direction, Receiver>>
  stream: GrpcStream | undefined
  /** Messages before the stream is open. */
  early: Uint8Array[]
  /** `finishing`: no further message is sent; `over`: the stream has ended. */
  phase: 'unopened' | 'opening' | 'open' | 'finishing' | 'over'
  end: SessionEnd | undefined
  isReading: boolean
  ignored: number
  linger: NodeJS.Timeout | undefined
}

export function createSession(options: SessionOptions): Session {
  const state: State = {
    options,
    receivers: [],
    byDirection: {},
    stream: undefined,
    early: [],
    phase: 'unopened',
    end: undefined,
    isReading: false,
    ignored: 0,
    linger: undefined,
  }
  return {
    get end() {
      return state.end
    },
    attach(direction, receiver) {
      state.byDirection[direction] = receiver
      state.receivers.push(receiver)
    },
    send: (message) => send(state, message),
    resume: () => read(state),
    fail: (reason) => finishWith(state, { kind: 'failed', reason }),
    cancel: () => finishWith(state, { kind: 'cancelled' }),
    finish: () => finish(state),
  }
}

function send(state: State, message: Uint8Array): boolean {
  if (state.end !== undefined || state.phase === 'finishing') return true
  if (state.phase === 'open') return state.stream?.send(message) ?? true
  state.early.push(message)
  if (state.phase === 'unopened') open(state)
  // `open` may have changed it.
  return state.early.length === 0
}

function open(state: State): void {
  const { open: openStream, acquire } = state.options
  if (!acquire()) {
    finishWith(state, { kind: 'failed', reason: 'too many streams to the processor' })
    return
  }
  state.phase = 'opening'
  const handler = {
    onMessage: (bytes: Uint8Array) => receive(state, bytes),
    onDrain: () => drained(state),
    onEnd(end: GrpcStreamEnd) {
      over(state)
      receiveEnd(state, end)
    },
  }
  try {
    const opened = openStream(handler)
    if (!(opened instanceof Promise)) start(state, opened)
    else opened.then((stream) => start(state, stream)).catch(() => abandon(state))
  } catch {
    abandon(state)
  }
}

/** The error may quote values of the request, so that its text is no reason. */
function abandon(state: State): void {
  state.stream?.cancel()
  over(state)
  finishWith(state, { kind: 'failed', reason: 'the stream could not be opened' })
}

function start(state: State, stream: GrpcStream): void {
  if (state.end !== undefined) {
    stream.cancel()
    over(state)
    return
  }
  state.stream = stream
  state.phase = 'open'
  let accepts = true
  for (const message of state.early.splice(0)) accepts = stream.send(message)
  read(state)
  if (accepts) drained(state)
}

function drained(state: State): void {
  for (const receiver of state.receivers) receiver.drained()
}

function read(state: State): void {
  if (state.isReading || state.stream === undefined || state.phase === 'over') return
  state.isReading = true
  state.stream.read()
}

function receive(state: State, bytes: Uint8Array): void {
  state.isReading = false
  if (state.end !== undefined || state.phase === 'finishing') {
    read(state)
    return
  }
  let message: ProcessorMessage
  try {
    message = decodeMessage(bytes)
  } catch (error) {
    finishWith(state, { kind: 'failed', reason: `invalid message of the processor: ${messageOf(error)}` })
    return
  }
  state.options.onReceived(message)
  const { response } = message
  if (response.kind === 'immediate') finishWith(state, { kind: 'immediate', response })
  else if (response.kind === 'none') ignore(state)
  else deliver(state, response, message)
}

function ignore(state: State): void {
  state.ignored += 1
  if (state.ignored <= maxIgnored) read(state)
  else finishWith(state, { kind: 'failed', reason: 'the processor sends messages without a response' })
}

function deliver(state: State, step: StepResponse, message: ProcessorMessage): void {
  const receiver = state.byDirection[step.direction]
  if (receiver === undefined) {
    const reason = `unexpected message of the processor: ${step.direction} ${step.phase} are not awaited`
    finishWith(state, { kind: 'failed', reason })
  } else if (receiver.receive(step, message)) read(state)
}

function receiveEnd(state: State, end: GrpcStreamEnd): void {
  if (end.kind === 'failed')
    finishWith(state, { kind: 'failed', reason: `gRPC status ${end.status}: ${end.reason}` })
  else if (state.receivers.some((receiver) => receiver.isAwaiting()))
    finishWith(state, { kind: 'failed', reason: 'the processor ended the stream without a response' })
  else finishWith(state, { kind: 'closed' })
}

/** Ends the exchange of messages, once. Responses that follow have no receiver. */
function finishWith(state: State, end: SessionEnd): void {
  if (state.end !== undefined) return
  const wasFinishing = state.phase === 'finishing'
  state.end = end
  if (!wasFinishing) state.options.onEnded(end)
  if (state.phase !== 'over') {
    state.stream?.cancel()
    if (state.phase === 'open' || state.phase === 'finishing') over(state)
  }
  for (const receiver of state.receivers) receiver.ended(end)
}

function finish(state: State): void {
  if (state.end !== undefined || state.phase === 'over' || state.phase === 'finishing') return
  if (state.phase === 'unopened' || state.phase === 'opening') {
    state.end = { kind: 'closed' }
    return
  }
  state.phase = 'finishing'
  state.stream?.halfClose()
  read(state)
  state.linger = setTimeout(() => finishWith(state, { kind: 'closed' }), lingerMs)
}

function over(state: State): void {
  if (state.phase === 'over') return
  state.phase = 'over'
  state.early = []
  clearTimeout(state.linger)
  state.options.onOver()
}
