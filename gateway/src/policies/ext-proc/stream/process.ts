import { type Body, type BodySource, isSource } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Head } from '../wire/encode.ts'
import { abortedBy } from './aborted.ts'
import { sourceOf } from './body-source.ts'
import { collectBody } from './collect.ts'
import { processDuplex } from './duplex.ts'
import { processChunks } from './lockstep.ts'
import { type Answer, ask, askBody, modesOfPart, nextContext, type Part, replacedBytes } from './part.ts'
import { askTrailers } from './trailers.ts'

/** Result of a direction. */
export type Processed =
  /** `body` replaces the former one if `isChanged`. */
  | { readonly kind: 'continue'; readonly body: Body; readonly isChanged: boolean }
  /** The processor failed. `body` is the unchanged one; undefined if it is lost. */
  | { readonly kind: 'failed'; readonly body: { readonly of: Body } | undefined }
  /** A buffered body is larger than the limit. */
  | { readonly kind: 'tooLarge' }
  | { readonly kind: 'immediate' | 'cancelled' }

type Unanswered = Exclude<Answer, { kind: 'step' }>

/** Sends a message of HTTP to the processor, and returns the body to forward. */
export async function processMessage(
  part: Part,
  body: Body,
  head: Pick<Head, 'pseudo' | 'headers'>,
): Promise<Processed> {
  const { direction, encoder, owner, session } = part
  const isDuplex = body !== undefined && modesOfPart(part).body === 'fullDuplexStreamed'
  if (modesOfPart(part).headers) {
    const first = { ...head, isComplete: body === undefined }
    if (isDuplex) return duplex(part, body, first)
    const answer = await ask(part, 'headers', encoder.headers(direction, first, nextContext(part)))
    if (answer.kind !== 'step') return unanswered(part, answer, body)
    const problem = owner.onHeaders(answer.step.headers)
    if (problem !== undefined) {
      session.fail(problem)
      return { kind: 'failed', body: { of: body } }
    }
    owner.onHeadersDone(answer.message)
    if (answer.step.replacesMessage) return replace(part, body, answer.step.body?.bytes)
  }
  if (body === undefined) return done(part, body, false)
  switch (modesOfPart(part).body) {
    case 'none':
      return { kind: 'continue', body: withTrailers(part, body), isChanged: false }
    case 'buffered':
    case 'bufferedPartial':
      return buffered(part, body)
    case 'streamed':
      return { kind: 'continue', body: processChunks(part, sourceOf(body)), isChanged: true }
    case 'fullDuplexStreamed':
      return duplex(part, body, undefined)
  }
}

function done(part: Part, body: Body, isChanged: boolean): Processed {
  part.owner.onDone()
  return { kind: 'continue', body, isChanged }
}

function replace(part: Part, body: Body, bytes: Uint8Array | undefined): Processed {
  if (isSource(body)) body.cancel()
  return done(part, bytes?.byteLength ? bytes : undefined, true)
}

function unanswered(part: Part, answer: Unanswered, body: Body): Processed {
  if (answer.kind === 'closed') return done(part, body, false)
  if (answer.kind === 'failed') return { kind: 'failed', body: { of: body } }
  return { kind: answer.kind }
}

async function duplex(part: Part, body: Uint8Array | BodySource, head: Head | undefined): Promise<Processed> {
  const result = await processDuplex(part, sourceOf(body), head)
  if (result.kind === 'body') return { kind: 'continue', body: result.body, isChanged: true }
  if (result.kind === 'unstarted') return unanswered(part, result.end, body)
  if (result.kind === 'failed' || result.kind === 'closed') return { kind: 'failed', body: undefined }
  return { kind: result.kind }
}

async function buffered(part: Part, body: Uint8Array | BodySource): Promise<Processed> {
  const { maxBufferBytes } = part.limits
  const collected = await collectBody(body, maxBufferBytes)
  const isPartial = collected.kind === 'larger'
  if (isPartial && modesOfPart(part).body === 'buffered') {
    collected.withPrefix(collected.bytes).cancel()
    part.session.finish()
    return { kind: 'tooLarge' }
  }
  const trailers = isPartial ? undefined : collected.trailers
  const sendsTrailers = trailers !== undefined && modesOfPart(part).trailers
  const restored = () =>
    isPartial ? collected.withPrefix(collected.bytes) : whole(collected.bytes, trailers)
  const answer = await askBody(part, collected.bytes, !isPartial && !sendsTrailers)
  if (answer.kind !== 'step') return unanswered(part, answer, restored())
  const problem = part.owner.onHeaders(answer.step.headers)
  if (problem !== undefined) {
    part.session.fail(problem)
    return { kind: 'failed', body: { of: restored() } }
  }
  const bytes = replacedBytes(answer.step.body, collected.bytes)
  if (isPartial) return done(part, collected.withPrefix(bytes), true)
  const asked = await askTrailers(part, trailers)
  if (asked.kind === 'trailers') return done(part, whole(bytes, asked.trailers), true)
  return unanswered(part, asked, restored())
}

function whole(bytes: Uint8Array, trailers: Headers | undefined): Body {
  if (trailers !== undefined) return sourceOf(bytes, trailers)
  return bytes.byteLength === 0 ? undefined : bytes
}

/** A body that is not sent, with the trailers of the processor. */
function withTrailers(part: Part, body: Uint8Array | BodySource): Body {
  const { owner, limits } = part
  if (!isSource(body) || !modesOfPart(part).trailers) {
    owner.onDone()
    return body
  }
  return {
    ...body,
    start(sink) {
      body.start({
        write: (chunk) => sink.write(chunk),
        end(trailers) {
          if (trailers === undefined) {
            sink.end()
            owner.onDone()
            return
          }
          void askTrailers(part, trailers).then((asked) => {
            const isBypassed = asked.kind === 'closed' || (asked.kind === 'failed' && limits.failsOpen)
            if (asked.kind === 'trailers') sink.end(asked.trailers)
            else if (isBypassed) sink.end(trailers)
            else {
              owner.onAborted()
              sink.fail(abortedBy(asked))
            }
            owner.onDone()
          })
        },
        fail(error) {
          sink.fail(error)
          owner.onDone()
        },
      })
    },
    cancel() {
      body.cancel()
      owner.onDone()
    },
  }
}
