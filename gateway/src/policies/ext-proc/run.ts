import { GatewayError } from '../../lib/gateway-error.ts'
import type { GrpcStreamHandler, OpenGrpcStream } from '../../net/grpc-stream.ts'
import { discard, type Reply } from '../../net/http-client/send.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { startStream, traceMetadata } from '../../pipeline/tracing/service-calls.ts'
import { type CallSpan, endCall } from '../../pipeline/tracing/trace.ts'
import type { ExtProcOutcome } from '../../telemetry/metrics/services.ts'
import { callerOf } from '../../upstream/credentials/caller.ts'
import { immediateReply } from './immediate.ts'
import type { Processor } from './processor.ts'
import { isProcessed, type Modes, overrideModes } from './stream/modes.ts'
import { createPart, type Part, type PartOwner } from './stream/part.ts'
import { createSession, type Session, type SessionEnd } from './stream/session.ts'
import { type Direction, type HeaderMutation, type ProcessorMessage, processMethod } from './wire/messages.ts'

/** External processing of one request. */
export type Run = {
  readonly exchange: Exchange
  readonly processor: Processor
  readonly session: Session
  modes: Modes
  /** Direction in progress, and those that are complete. */
  direction: Direction
  readonly done: Set<Direction>
  /** The reply of a refusal, or of the processor, has been returned. */
  hasReplied: boolean
  /** The body of the request was aborted because of the processor. */
  isAborted: boolean
  outcome: ExtProcOutcome | undefined
  /** Fields of the headers that the processor must not change. */
  ignoredFields: number
  messages: { sent: number; received: number }
  /** Span of the stream; undefined without one. */
  span: CallSpan | undefined
}

export function createRun(exchange: Exchange, processor: Processor): Run {
  const { streams, meter } = processor
  const run: Run = {
    exchange,
    processor,
    session: createSession({
      open: (handler) => {
        meter.streams(1)
        run.span = startStream(exchange.trace, processMethod)
        return openStream(processor, exchange, { handler, span: run.span })
      },
      acquire: () => streams.tryAcquire(),
      onOver() {
        meter.streams(-1)
        streams.release()
      },
      onEnded(end) {
        recordEnd(run, end)
        if (run.span !== undefined)
          endCall(exchange.trace, run.span, end.kind === 'failed' ? 'processor failed' : undefined)
      },
      onReceived: (message) => recordMessage(run, message),
    }),
    modes: processor.modes,
    direction: 'request',
    done: new Set(),
    hasReplied: false,
    isAborted: false,
    outcome: undefined,
    ignoredFields: 0,
    messages: { sent: 0, received: 0 },
    span: undefined,
  }
  exchange.cancellation.onCancel(() => run.session.cancel())
  return run
}

/** Opens a stream with the credential of the gateway. */
function openStream(
  { open, authorize, context }: Processor,
  exchange: Exchange,
  { handler, span }: { handler: GrpcStreamHandler; span: CallSpan | undefined },
): ReturnType<OpenGrpcStream> {
  const metadata = [...context.initialMetadata(exchange.facts), ...traceMetadata(exchange.trace, span)]
  if (authorize === undefined) return open(handler, metadata)
  return authorize(callerOf(exchange)).then((headers) => {
    const credential = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
    return open(handler, [...credential, ...metadata])
  })
}

function recordEnd(run: Run, end: SessionEnd): void {
  const { processor } = run
  if (end.kind === 'failed') {
    processor.recordFailure(end.reason)
    run.outcome ??= processor.limits.failsOpen ? 'failed_open' : 'failed_closed'
    if (!processor.limits.failsOpen) {
      run.exchange.log.failure ??= new GatewayError('internal', `external processing failed: ${end.reason}`)
    }
  } else if (end.kind === 'immediate') run.outcome ??= 'responded'
  else if (end.kind === 'cancelled') run.outcome ??= 'cancelled'
}

function recordMessage(run: Run, { response, metadata }: ProcessorMessage): void {
  const { exchange, processor } = run
  run.messages.received += 1
  const phase =
    response.kind === 'step' ? (`${response.direction}_${response.phase}` as const) : response.kind
  processor.meter.received(phase)
  if (metadata === undefined) return
  const { facts } = exchange
  facts.extProc = { ...facts.extProc, ...metadata }
}

/** Applies a mutation of headers; returns the reason of an invalid one. */
export type ApplyHeaders = (mutation: HeaderMutation | undefined) => string | undefined

/** Starts a direction. */
export function startPart(run: Run, direction: Direction, onHeaders: ApplyHeaders): Part {
  const { processor, session } = run
  const { meter, clock, encoder, limits } = processor
  run.direction = direction
  const owner: PartOwner = {
    modes: () => run.modes,
    context: contextOf(run, direction),
    onHeaders,
    onHeadersDone({ modeOverride }) {
      if (modeOverride !== undefined && processor.allowsModeOverride)
        run.modes = overrideModes(run.modes, modeOverride, direction)
    },
    onSent(phase) {
      run.messages.sent += 1
      meter.sent(`${direction}_${phase}`)
    },
    onWaited: (phase, startedAt) => meter.waited(`${direction}_${phase}`, clock.monotonic() - startedAt),
    now: () => clock.monotonic(),
    onAborted() {
      if (direction === 'request') run.isAborted = true
      run.done.add(direction)
    },
    onDone() {
      run.done.add(direction)
      finishIfDone(run)
    },
  }
  return createPart({ direction, session, encoder, limits, owner })
}

/** Ends the stream after the last message. */
function finishIfDone(run: Run): void {
  const { done, modes, session } = run
  if (!done.has('request') && isProcessed(modes, 'request')) return
  if (done.has('response') || !isProcessed(modes, 'response')) session.finish()
}

function contextOf(
  { processor, exchange, modes, messages }: Run,
  direction: Direction,
): PartOwner['context'] {
  const { context, encoder } = processor
  const { facts } = exchange
  const metadata = context.metadata(facts)
  const later = encoder.context({ metadata })
  const attributes =
    direction === 'request' ? context.requestAttributes(facts) : context.responseAttributes(facts)
  const first = encoder.context({ metadata, attributes, modes: messages.sent === 0 ? modes : undefined })
  return { first, later }
}

/** The reply if the processor failed. */
export function refuseFailed(run: Run): Reply {
  run.hasReplied = true
  run.outcome = 'failed_closed'
  const { exchange } = run
  exchange.log.refusedBy = 'ext-proc: failed'
  exchange.log.errorCode = 'ext_proc_failed'
  return refuse(exchange, { status: 500, code: 'ext_proc_failed', message: 'external processing failed' })
}

/** The reply of the processor, or a refusal if it is invalid. */
export function respondImmediately(run: Run): Reply {
  const { session, exchange, processor } = run
  const { end } = session
  const made = end?.kind === 'immediate' ? immediateReply(exchange, end.response) : undefined
  if (made?.kind !== 'reply') {
    processor.recordFailure(made?.reason ?? 'the processor sent no response')
    return refuseFailed(run)
  }
  run.hasReplied = true
  exchange.log.refusedBy = 'ext-proc'
  exchange.log.errorCode = 'ext_proc_response'
  exchange.log.failure = undefined
  return made.reply
}

/** Replaces a reply by that of the processor, or by a refusal. */
export function replaceReply(run: Run, reply: Reply, by: (run: Run) => Reply): Reply {
  discard(reply)
  return by(run)
}
