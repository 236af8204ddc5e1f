import type { BodySource } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { createUpstreamBody, type UpstreamBody } from '../../../net/http-client/upstream-body.ts'
import { abortedBy } from './aborted.ts'
import { type Answer, askBody, modesOfPart, type Part, replacedBytes } from './part.ts'
import { askTrailers } from './trailers.ts'

/*
 * Body mode `streamed`: each chunk awaits its response, which replaces it.
 */

type State = {
  readonly part: Part
  readonly source: BodySource
  readonly output: UpstreamBody
  /** At most the chunks that the source had read already when it was paused. */
  readonly chunks: Uint8Array[]
  /** `bypassed`: chunks pass without the processor. */
  phase: 'processing' | 'bypassed' | 'over'
  isBusy: boolean
  /** The reader of the output is full. */
  isFull: boolean
  input: { readonly kind: 'open' } | { readonly kind: 'ended'; readonly trailers: Headers | undefined }
}

const open = { kind: 'open' } as const

/** Returns the processed body. */
export function processChunks(part: Part, source: BodySource): BodySource {
  const state: State = {
    part,
    source,
    output: createUpstreamBody({ pause() {}, resume: () => resume(state), abort() {} }, () => cancel(state)),
    chunks: [],
    phase: 'processing',
    isBusy: false,
    isFull: false,
    input: open,
  }
  source.start({
    write(chunk) {
      if (state.phase === 'bypassed') return state.output.write(chunk)
      if (state.phase === 'over') return true
      state.chunks.push(chunk)
      run(state)
      return false
    },
    end(trailers) {
      state.input = { kind: 'ended', trailers }
      if (state.phase === 'bypassed') end(state, trailers)
      else run(state)
    },
    fail(error) {
      if (state.phase === 'over') return
      state.phase = 'over'
      state.output.fail(error)
      state.part.owner.onDone()
    },
  })
  return state.output
}

function resume(state: State): void {
  state.isFull = false
  if (state.phase === 'bypassed') state.source.resume()
  else run(state)
}

function cancel(state: State): void {
  if (state.phase === 'over') return
  state.phase = 'over'
  state.source.cancel()
  state.part.owner.onDone()
}

function run(state: State): void {
  pump(state).catch(() => {
    state.part.session.fail('the body could not be processed')
    if (isOver(state)) return
    state.phase = 'over'
    state.source.cancel()
    state.part.owner.onAborted()
    state.output.fail(abortedBy({ kind: 'failed', reason: '' }))
  })
}

async function pump(state: State): Promise<void> {
  if (state.isBusy) return
  state.isBusy = true
  while (state.phase === 'processing' && !state.isFull) {
    const chunk = state.chunks.shift()
    if (chunk !== undefined) await processChunk(state, chunk)
    else if (state.input.kind === 'ended') await processEnd(state, state.input.trailers)
    else {
      state.isBusy = false
      state.source.resume()
      return
    }
  }
  state.isBusy = false
}

async function processChunk(state: State, chunk: Uint8Array): Promise<void> {
  const answer = await askBody(state.part, chunk, false)
  if (isOver(state)) return
  if (answer.kind === 'step') write(state, replacedBytes(answer.step.body, chunk))
  else leave(state, answer, chunk)
}

async function processEnd(state: State, trailers: Headers | undefined): Promise<void> {
  const { part } = state
  const hasTrailers = trailers !== undefined && modesOfPart(part).trailers
  if (!hasTrailers) {
    const answer = await askBody(part, nothing, true)
    if (isOver(state)) return
    if (answer.kind !== 'step') return leave(state, answer, undefined)
    write(state, replacedBytes(answer.step.body, nothing))
  }
  const asked = await askTrailers(part, trailers)
  if (isOver(state)) return
  if (asked.kind === 'trailers') end(state, asked.trailers)
  else leave(state, asked, undefined)
}

const nothing = new Uint8Array(0)

function isOver(state: State): boolean {
  return state.phase === 'over'
}

function write(state: State, bytes: Uint8Array): void {
  if (bytes.byteLength > 0 && !state.output.write(bytes)) state.isFull = true
}

function end(state: State, trailers: Headers | undefined): void {
  state.phase = 'over'
  state.output.end(trailers)
  state.part.owner.onDone()
}

/** Continues without the processor if it permits that, or aborts the body. */
function leave(state: State, answer: Exclude<Answer, { kind: 'step' }>, chunk: Uint8Array | undefined): void {
  const { part, output, source } = state
  if (answer.kind !== 'closed' && !(answer.kind === 'failed' && part.limits.failsOpen)) {
    state.phase = 'over'
    source.cancel()
    part.owner.onAborted()
    output.fail(abortedBy(answer))
    return
  }
  state.phase = 'bypassed'
  if (chunk !== undefined) write(state, chunk)
  for (const next of state.chunks.splice(0)) write(state, next)
  if (state.input.kind === 'ended') end(state, state.input.trailers)
  else if (!state.isFull) source.resume()
}
