import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { Channel } from '../../../lib/planes/peers.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { MessageFlow, TargetFailure } from '../message/message.ts'
import { receiveStream, sendStream } from './message-stream.ts'
import type { StreamMessage } from './plain-values.ts'
import { isStreamMessage } from './remote-session.ts'

const windowChars = 256 * 1024

/** A stream whose messages and credits wait in queues until they are delivered. */
function fixture(onMessage: (text: string) => boolean) {
  const toReceiver: StreamMessage[] = []
  const toSender: StreamMessage[] = []
  const ended: (TargetFailure | 'end')[] = []
  let closed = 0
  const channel: Channel = {
    post(message) {
      if (isStreamMessage(message)) toSender.push(structuredClone(message))
    },
    onMessage() {},
    onClose() {},
    close() {
      closed += 1
    },
  }
  const sent = sendStream((message) => toReceiver.push(structuredClone(message)))
  const received = receiveStream(channel, {
    message: ({ text }) => onMessage(text),
    mark() {},
    end: () => ended.push('end'),
    fail: (failure) => ended.push(failure),
  })
  return {
    sent,
    received,
    ended,
    toReceiver,
    closed: () => closed,
    deliver(): boolean {
      const message = toReceiver.shift()
      if (message !== undefined) received.receive(message)
      const credit = toSender.shift()
      if (credit?.kind === 'credit') sent.credit(credit.chars)
      return message !== undefined || credit !== undefined
    },
  }
}

describe('a stream between data planes', () => {
  it('delivers all messages in order within the window, with any capacities and delays', () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 20_000, max: 200_000 }))
    fc.assert(
      fc.property(
        fc.array(size, { maxLength: 40 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
        fc
          .array(fc.constantFrom('resume', 'deliver'), { minLength: 1, maxLength: 20 })
          .map((few) => [...few, 'deliver']),
        (sizes, capacities, steps) => {
          const got: string[] = []
          const stream = fixture((text) => {
            got.push(text)
            return capacities[got.length % capacities.length] ?? true
          })
          const texts = sizes.map((length, index) => messageOf({ n: index, text: 'x'.repeat(length) }))
          let next = 0
          let largest = 0
          const push = () => {
            while (next < texts.length) {
              const message = texts[next]
              next += 1
              if (message === undefined) continue
              largest = Math.max(largest, message.text.length)
              const more = stream.sent.sink.message(message)
              const waiting = stream.toReceiver.reduce(
                (sum, m) => sum + (m.kind === 'message' ? m.text.length : 0),
                0,
              )
              expect(waiting).toBeLessThanOrEqual(windowChars + largest)
              if (!more) return
            }
            if (next === texts.length) {
              next += 1
              stream.sent.sink.end()
            }
          }
          const flow: MessageFlow = { resume: push, cancel() {} }
          stream.sent.attach(flow)
          push()
          for (let step = 0; stream.ended.length === 0; step += 1) {
            expect(step).toBeLessThan(10_000)
            if (steps[step % steps.length] === 'resume' || !stream.deliver()) stream.received.flow.resume()
          }
          expect(got).toEqual(texts.map(({ text }) => text))
          expect([stream.ended, stream.closed()]).toEqual([['end'], 1])
        },
      ),
      { numRuns: 200 },
    )
  })

  it('fails with the failure of the target, and otherwise with the end of the other data plane', () => {
    const failed = fixture(() => true)
    const error = new GatewayError('upstream_reset', 'target "a" ended')
    failed.sent.sink.fail({ kind: 'error', error })
    failed.deliver()
    failed.received.closed()
    expect(failed.ended).toEqual([
      { kind: 'error', error: expect.objectContaining({ code: 'upstream_reset' }) },
    ])
    const lost = fixture(() => true)
    lost.received.closed()
    expect(lost.ended).toEqual([{ kind: 'ended', reason: 'its worker thread has ended' }])
  })

  it('delivers nothing after its cancellation', () => {
    const stream = fixture(() => {
      throw new Error('delivered')
    })
    stream.sent.sink.message(messageOf({}))
    stream.sent.sink.end()
    stream.received.flow.cancel()
    while (stream.deliver()) expect(stream.ended).toEqual([])
    stream.received.closed()
    expect([stream.ended, stream.closed()]).toEqual([[], 1])
  })
})
