import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BodyMutation, Phase, StepResponse } from '../wire/messages.ts'
import { accept, initialProgress, isAwaiting, type Progress, withDuplexSent, withSent } from './progress.ts'

const response = (phase: Phase, body?: BodyMutation): StepResponse => ({
  kind: 'step',
  direction: 'request',
  phase,
  replacesMessage: false,
  headers: undefined,
  body,
})
const streamed = (isLast: boolean): BodyMutation => ({ kind: 'streamed', bytes: new Uint8Array(1), isLast })
const replaced: BodyMutation = { kind: 'replace', bytes: new Uint8Array(0) }

function kindsOf(progress: Progress, ...steps: StepResponse[]) {
  let current = progress
  return steps.map((step) => {
    const accepted = accept(current, step)
    if (accepted.kind === 'accepted') current = accepted.progress
    return accepted.kind
  })
}

describe('in lockstep', () => {
  it('each message has one response', () => {
    const sent = withSent(initialProgress, 'headers')
    expect(kindsOf(sent, response('headers'), response('headers'))).toEqual(['accepted', 'violation'])
    expect(kindsOf(sent, response('body'))).toEqual(['violation'])
    expect(kindsOf(sent, response('trailers'))).toEqual(['violation'])
  })

  it('a body has a response for each chunk, which is not streamed', () => {
    const sent = withSent({ ...initialProgress, headers: 'done' }, 'body')
    expect(kindsOf(sent, response('body', replaced), response('body'))).toEqual(['accepted', 'violation'])
    expect(kindsOf(sent, response('body', streamed(false)))).toEqual(['violation'])
  })
})

describe('in full duplex', () => {
  const sent = withDuplexSent(withSent(initialProgress, 'headers'), true)

  it('the headers come first, then any chunks', () => {
    const chunk = response('body', streamed(false))
    expect(kindsOf(sent, chunk)).toEqual(['violation'])
    expect(kindsOf(sent, response('headers'), chunk, chunk)).toEqual(['accepted', 'accepted', 'accepted'])
  })

  it('nothing follows the last chunk, except for awaited trailers', () => {
    const last = response('body', streamed(true))
    expect(kindsOf(sent, response('headers'), last, last)).toEqual(['accepted', 'accepted', 'violation'])
    const withTrailers = withSent(sent, 'trailers')
    expect(kindsOf(withTrailers, response('headers'), last, response('trailers'))).toEqual([
      'accepted',
      'accepted',
      'accepted',
    ])
  })

  it('chunks are streamed', () => {
    expect(kindsOf(sent, response('headers'), response('body', replaced))).toEqual(['accepted', 'violation'])
  })
})

const anyStep = fc.record({
  phase: fc.constantFrom<Phase>('headers', 'body', 'trailers'),
  body: fc.constantFrom(undefined, replaced, streamed(false), streamed(true)),
})
type Event = { sent: Phase; isLast: boolean } | { phase: Phase; body: BodyMutation | undefined }
const anySent = fc.record({
  sent: fc.constantFrom<Phase>('headers', 'body', 'trailers'),
  isLast: fc.boolean(),
})

it('accepts no more responses than messages await, for any sequence', () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.array(fc.oneof<fc.Arbitrary<Event>[]>(anyStep, anySent)),
      (isDuplex, events) => {
        let progress = initialProgress
        const open = { headers: 0, trailers: 0 }
        for (const event of events) {
          if ('sent' in event) {
            if (event.sent !== 'body') {
              if (progress[event.sent] !== 'unsent') continue
              open[event.sent] += 1
              progress = withSent(progress, event.sent)
            } else progress = isDuplex ? withDuplexSent(progress, event.isLast) : withSent(progress, 'body')
            continue
          }
          const before = progress
          const accepted = accept(progress, response(event.phase, event.body))
          if (accepted.kind === 'violation') {
            expect(accepted.reason).toMatch(/^unexpected message of the processor: /)
            expect(progress).toEqual(before)
            continue
          }
          progress = accepted.progress
          if (event.phase !== 'body') open[event.phase] -= 1
          expect(open[event.phase === 'body' ? 'headers' : event.phase]).toBeGreaterThanOrEqual(0)
          expect(isAwaiting(before)).toBe(true)
        }
      },
    ),
  )
})
