import type { BodySource } from '../../../net/http/body.ts'
import { type ChunkList, createChunkList } from '../../../net/http/chunk-list.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { createUpstreamBody, type UpstreamBody } from '../../../net/http-client/upstream-body.ts'
import type { Head } from '../wire/encode.ts'
import type { ProcessorMessage, StepResponse } from '../wire/messages.ts'
import { abortedBy } from './aborted.ts'
import { modesOfPart, nextContext, type Part } from './part.ts'
import { withDuplexSent, withSent } from './progress.ts'
import type { SessionEnd } from './session.ts'
import { editTrailers } from './trailers.ts'

/*
 * Body mode `fullDuplexStreamed`: headers, chunks and trailers are sent as they arrive. The processor
 * responds with headers, then with any chunks of its own, then with trailers.
 */

export type DuplexHead =
  /** The headers of the processor have arrived; `body` follows. */
  | { readonly kind: 'body'; readonly body: BodySource | Uint8Array }
  | { readonly kind: 'failed' | 'closed' | 'cancelled' | 'immediate' }
  /** The session ended before the body was read. */
  | { readonly kind: 'unstarted'; readonly end: SessionEnd }

type State = {
  readonly part: Part
  readonly source: BodySource
  readonly output: UpstreamBody
  readonly resolve: (head: DuplexHead) => void
  readonly startedAt: number
  /** `bypassed`: the body passes without the processor. */
  phase: 'processing' | 'bypassed' | 'over'
  /** Sent chunks, while the message can continue without the processor. */
  retained: ChunkList | undefined
  retainedBytes: number
  input: { readonly kind: 'open' } | { readonly kind: 'ended'; readonly trailers: Headers | undefined }
  /** Longest wait for the processor: to read, or to respond after the last message. */
  timer: NodeJS.Timeout | undefined
}

const open = { kind: 'open' } as const
const nothing = new Uint8Array(0)

/** Starts the exchange. `head` is undefined if it has been sent, or is not to be sent. */
export function processDuplex(part: Part, source: BodySource, head: Head | undefined): Promise<DuplexHead> {
  return new Promise((resolve) => {
    const state: State = {
      part,
      source,
      output: createUpstreamBody({ pause() {}, resume: () => resume(state), abort() {} }, () =>
        cancel(state),
      ),
      resolve,
      startedAt: part.owner.now(),
      phase: 'processing',
      retained: part.limits.failsOpen ? createChunkList() : undefined,
      retainedBytes: 0,
      input: open,
      timer: undefined,
    }
    const { direction, encoder, session, owner } = part
    if (head !== undefined) {
      part.progress = withSent(part.progress, 'headers')
      owner.onSent('headers')
      session.send(encoder.headers(direction, head, nextContext(part)))
    }
    if (session.end !== undefined) {
      resolve({ kind: 'unstarted', end: session.end })
      return
    }
    part.handler = {
      receive: (step, message) => receive(state, step, message),
      drained: () => drained(state),
      ended: (end) => leave(state, end),
    }
    if (head === undefined) resolve({ kind: 'body', body: state.output })
    start(state)
  })
}

function start(state: State): void {
  state.source.start({
    write(chunk) {
      if (state.phase === 'processing') return sendChunk(state, chunk)
      return state.phase === 'over' || state.output.write(chunk)
    },
    end(trailers) {
      state.input = { kind: 'ended', trailers }
      if (state.phase === 'processing') sendEnd(state, trailers)
      else if (state.phase === 'bypassed') finish(state, trailers)
    },
    fail(error) {
      if (state.phase === 'over') return
      close(state)
      state.output.fail(error)
      state.resolve({ kind: 'body', body: state.output })
      state.part.owner.onDone()
    },
  })
}

function sendChunk(state: State, chunk: Uint8Array): boolean {
  retain(state, chunk)
  return sendBody(state, chunk, false)
}

/** Returns false if the processor does not read, for which it has a limited time. */
function sendBody(state: State, bytes: Uint8Array, isLast: boolean): boolean {
  const { part } = state
  part.progress = withDuplexSent(part.progress, isLast)
  part.owner.onSent('body')
  const content = { bytes, isLast }
  const accepts = part.session.send(part.encoder.body(part.direction, content, nextContext(part)))
  if (!accepts) startDeadline(state, 'the processor does not read')
  return accepts
}

function sendEnd(state: State, trailers: Headers | undefined): void {
  const { part } = state
  if (trailers === undefined || !modesOfPart(part).trailers) sendBody(state, nothing, true)
  else {
    part.progress = withSent(part.progress, 'trailers')
    part.owner.onSent('trailers')
    part.session.send(part.encoder.trailers(part.direction, trailers, nextContext(part)))
  }
  startDeadline(state, 'no response to the body')
}

/** Without memory for the chunks, the message cannot continue without the processor. */
function retain(state: State, chunk: Uint8Array): void {
  const { retained, source, part } = state
  if (retained === undefined) return
  state.retainedBytes += chunk.byteLength
  const fits = state.retainedBytes <= part.limits.maxBufferBytes
  if (fits && source.budget?.acquire(chunk.byteLength) !== false) retained.add(chunk)
  else state.retained = undefined
}

function startDeadline(state: State, problem: string): void {
  const { direction, session, limits } = state.part
  clearTimeout(state.timer)
  state.timer = setTimeout(
    () => session.fail(`${direction}: ${problem} within ${limits.deadlineMs} ms`),
    limits.deadlineMs,
  )
}

function drained(state: State): void {
  if (state.phase !== 'processing' || state.input.kind === 'ended') return
  clearTimeout(state.timer)
  state.source.resume()
}

function receive(state: State, step: StepResponse, message: ProcessorMessage): boolean {
  if (state.phase !== 'processing') return true
  if (state.input.kind === 'ended') startDeadline(state, 'no response to the body')
  if (step.phase === 'headers') return receiveHeaders(state, step, message)
  // From here on, the original body is incomplete without the processor.
  state.retained = undefined
  if (step.phase === 'trailers') return receiveTrailers(state, step)
  if (step.body?.kind !== 'streamed') return true
  const accepts = step.body.bytes.byteLength === 0 || state.output.write(step.body.bytes)
  if (step.body.isLast && state.part.progress.trailers !== 'awaited') {
    if (state.input.kind === 'open') state.source.cancel()
    finish(state, state.input.kind === 'ended' ? state.input.trailers : undefined)
  } else if (!accepts) clearTimeout(state.timer)
  return accepts
}

function receiveHeaders(state: State, step: StepResponse, message: ProcessorMessage): boolean {
  const { owner, session } = state.part
  owner.onWaited('headers', state.startedAt)
  const problem = owner.onHeaders(step.headers)
  if (problem !== undefined) {
    session.fail(problem)
    return true
  }
  owner.onHeadersDone(message)
  if (!step.replacesMessage) state.resolve({ kind: 'body', body: state.output })
  else {
    close(state)
    state.source.cancel()
    state.resolve({ kind: 'body', body: step.body?.bytes ?? nothing })
    owner.onDone()
  }
  return true
}

function receiveTrailers(state: State, step: StepResponse): boolean {
  const trailers = (state.input.kind === 'ended' && state.input.trailers) || {}
  const edited = editTrailers(trailers, step.headers)
  if (edited.kind === 'failed') state.part.session.fail(edited.reason)
  else finish(state, edited.trailers)
  return true
}

/** The reader of the output continues. */
function resume(state: State): void {
  if (state.phase === 'bypassed') state.source.resume()
  else if (state.phase === 'processing') {
    if (state.input.kind === 'ended') startDeadline(state, 'no response to the body')
    state.part.session.resume()
  }
}

function finish(state: State, trailers: Headers | undefined): void {
  close(state)
  state.output.end(trailers)
  state.part.owner.onDone()
}

function cancel(state: State): void {
  if (state.phase === 'over') return
  close(state)
  state.source.cancel()
  state.part.session.resume()
  state.part.owner.onDone()
}

function close(state: State): void {
  clearTimeout(state.timer)
  state.phase = 'over'
  state.retained = undefined
}

/** Continues without the processor if the message is complete, or aborts the body. */
function leave(state: State, end: SessionEnd): void {
  if (state.phase !== 'processing') return
  clearTimeout(state.timer)
  const { part, source, output, retained } = state
  const mayContinue = end.kind === 'closed' || (end.kind === 'failed' && part.limits.failsOpen)
  if (mayContinue && (retained !== undefined || part.progress.body === 'unsent')) {
    bypass(state)
    return
  }
  close(state)
  source.cancel()
  part.owner.onAborted()
  output.fail(abortedBy(end))
  state.resolve(end)
}

function bypass(state: State): void {
  const { source, output, retained } = state
  state.phase = 'bypassed'
  state.retained = undefined
  let accepts = true
  for (const chunk of retained?.close() ?? []) accepts = output.write(chunk)
  if (state.input.kind === 'ended') finish(state, state.input.trailers)
  else if (accepts) source.resume()
  state.resolve({ kind: 'body', body: output })
}
