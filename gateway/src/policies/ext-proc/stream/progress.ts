import type { Phase, StepResponse } from '../wire/messages.ts'

/**
 * Progress of one direction of a stream: pure state, so that any sequence of messages is either accepted or a
 * violation. Outside full duplex, each message awaits its response before the next one.
 */
export type Progress = {
  readonly headers: 'unsent' | 'awaited' | 'done'
  /** `open` and `ended` are full duplex: before and after the last message of the body. */
  readonly body: 'unsent' | 'awaited' | 'open' | 'ended' | 'done'
  readonly trailers: 'unsent' | 'awaited' | 'done'
}

export const initialProgress: Progress = { headers: 'unsent', body: 'unsent', trailers: 'unsent' }

/** Records a sent message. */
export function withSent(progress: Progress, phase: Phase): Progress {
  return { ...progress, [phase]: 'awaited' }
}

/** Records a message of a body in full duplex. */
export function withDuplexSent(progress: Progress, isLast: boolean): Progress {
  return progress.body === 'done' ? progress : { ...progress, body: isLast ? 'ended' : 'open' }
}

/** Whether a response is due. A clean end of the stream is valid only without one. */
export function isAwaiting({ headers, body, trailers }: Progress): boolean {
  return headers === 'awaited' || trailers === 'awaited' || (body !== 'unsent' && body !== 'done')
}

export type Accepted =
  | { readonly kind: 'accepted'; readonly progress: Progress }
  | { readonly kind: 'violation'; readonly reason: string }

/** Checks a response against the progress. */
export function accept(progress: Progress, step: StepResponse): Accepted {
  if (step.phase === 'headers') return acceptHeaders(progress, step)
  return step.phase === 'body' ? acceptBody(progress, step) : acceptTrailers(progress)
}

function acceptHeaders(progress: Progress, { direction }: StepResponse): Accepted {
  if (progress.headers !== 'awaited') return violation(`${direction} headers are not awaited`)
  return { kind: 'accepted', progress: { ...progress, headers: 'done' } }
}

function acceptBody(progress: Progress, { direction, body }: StepResponse): Accepted {
  const isDuplex = progress.body === 'open' || progress.body === 'ended'
  if (!isDuplex && progress.body !== 'awaited') return violation(`a ${direction} body is not awaited`)
  if (progress.headers === 'awaited') return violation(`a ${direction} body precedes the headers`)
  if (!isDuplex) {
    if (body?.kind === 'streamed') return violation('streamed bodies are for full duplex only')
    return { kind: 'accepted', progress: { ...progress, body: 'unsent' } }
  }
  if (body?.kind !== 'streamed') return violation('full duplex requires a streamed response')
  return { kind: 'accepted', progress: body.isLast ? { ...progress, body: 'done' } : progress }
}

function acceptTrailers(progress: Progress): Accepted {
  if (progress.trailers !== 'awaited') return violation('trailers are not awaited')
  if (progress.headers === 'awaited') return violation('trailers precede the headers')
  if (progress.body === 'awaited') return violation('trailers precede the body')
  return { kind: 'accepted', progress: { ...progress, body: 'done', trailers: 'done' } }
}

function violation(reason: string): Accepted {
  return { kind: 'violation', reason: `unexpected message of the processor: ${reason}` }
}
