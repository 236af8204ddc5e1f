import type { Encoder } from '../wire/encode.ts'
import type {
  BodyMutation,
  Direction,
  HeaderMutation,
  Phase,
  ProcessorMessage,
  StepResponse,
} from '../wire/messages.ts'
import { type DirectionModes, type Modes, modesOf } from './modes.ts'
import { accept, initialProgress, isAwaiting, type Progress, withSent } from './progress.ts'
import type { Session, SessionEnd } from './session.ts'

/** One direction of a request at the processor. */
export type Part = {
  readonly direction: Direction
  readonly session: Session
  readonly encoder: Encoder
  readonly limits: PartLimits
  readonly owner: PartOwner
  progress: Progress
  /** Receiver of the next response. */
  handler: StepHandler | undefined
  /** The first message has further fields. */
  isFirst: boolean
}

export type PartLimits = {
  /** Longest wait for a response. */
  readonly deadlineMs: number
  /** Largest buffered body. */
  readonly maxBufferBytes: number
  /** Whether messages continue without the processor after its failure. */
  readonly failsOpen: boolean
}

/** Owner of a direction: applies the changes of the processor. */
export type PartOwner = {
  modes(): Modes
  /** Encoded fields of the first and of later messages. */
  readonly context: { readonly first: Uint8Array; readonly later: Uint8Array }
  /** Applies the response to the headers, or to a buffered body; returns the reason of an invalid one. */
  onHeaders(mutation: HeaderMutation | undefined): string | undefined
  onHeadersDone(message: ProcessorMessage): void
  onSent(phase: Phase): void
  onWaited(phase: Phase, startedAt: number): void
  now(): number
  /** A body was aborted because of the processor. */
  onAborted(): void
  /** No further message of this direction is sent. */
  onDone(): void
}

export type StepHandler = {
  /** False if full. */
  receive(step: StepResponse, message: ProcessorMessage): boolean
  drained(): void
  ended(end: SessionEnd): void
}

export type PartOptions = Pick<Part, 'direction' | 'session' | 'encoder' | 'limits' | 'owner'>

export function createPart(options: PartOptions): Part {
  const part: Part = { ...options, progress: initialProgress, handler: undefined, isFirst: true }
  options.session.attach(options.direction, {
    receive(step, message) {
      const accepted = accept(part.progress, step)
      if (accepted.kind === 'violation') {
        part.session.fail(accepted.reason)
        return true
      }
      part.progress = accepted.progress
      return part.handler?.receive(step, message) ?? true
    },
    drained: () => part.handler?.drained(),
    ended(end) {
      const { handler } = part
      part.handler = undefined
      handler?.ended(end)
    },
    isAwaiting: () => isAwaiting(part.progress),
  })
  return part
}

export function modesOfPart({ owner, direction }: Part): DirectionModes {
  return modesOf(owner.modes(), direction)
}

/** Fields of the next message. */
export function nextContext(part: Part): Uint8Array {
  const { first, later } = part.owner.context
  if (!part.isFirst) return later
  part.isFirst = false
  return first
}

/** Response to a message, or the end of the session. */
export type Answer =
  | { readonly kind: 'step'; readonly step: StepResponse; readonly message: ProcessorMessage }
  | SessionEnd

/** Sends a message and waits for its response. */
export function ask(part: Part, phase: Phase, message: Uint8Array): Promise<Answer> {
  const { session, owner, limits } = part
  if (session.end !== undefined) return Promise.resolve(session.end)
  return new Promise((resolve) => {
    const startedAt = owner.now()
    const timer = startDeadline(part, phase)
    const settle = (answer: Answer) => {
      clearTimeout(timer)
      part.handler = undefined
      owner.onWaited(phase, startedAt)
      resolve(answer)
    }
    part.handler = {
      receive(step, received) {
        settle({ kind: 'step', step, message: received })
        return true
      },
      drained() {},
      ended: settle,
    }
    part.progress = withSent(part.progress, phase)
    owner.onSent(phase)
    session.send(message)
  })

  function startDeadline({ direction }: Part, of: Phase) {
    const reason = `no response to ${direction} ${of} within ${limits.deadlineMs} ms`
    return setTimeout(() => session.fail(reason), limits.deadlineMs)
  }
}

/** Sends a body, or a part of it, and waits for the response. */
export function askBody(part: Part, bytes: Uint8Array, isLast: boolean): Promise<Answer> {
  return ask(part, 'body', part.encoder.body(part.direction, { bytes, isLast }, nextContext(part)))
}

/** The bytes that replace those of a message. */
export function replacedBytes(mutation: BodyMutation | undefined, original: Uint8Array): Uint8Array {
  return mutation === undefined ? original : mutation.bytes
}
