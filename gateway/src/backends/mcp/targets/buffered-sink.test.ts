import { describe, expect, it } from 'vitest'
import type { Message, TargetFailure } from '../message/message.ts'
import { createBufferedSink } from './buffered-sink.ts'

function message(text: string): Message {
  return { text, value: {} }
}

/** An buffered whose sink is full after each message. */
function fullAfterEach() {
  const heard: string[] = []
  let held = 0
  const buffered = createBufferedSink(
    {
      message({ text }) {
        heard.push(text)
        return false
      },
      mark() {},
      end: () => heard.push('end'),
      fail: ({ kind }) => heard.push(`fail ${kind}`),
    },
    (change) => {
      held += change
    },
  )
  return { heard, buffered, held: () => held }
}

const gone: TargetFailure = { kind: 'ended', reason: 'gone' }

describe('an buffered', () => {
  it('queues messages while the sink is full, and ends after them', () => {
    const { heard, buffered, held } = fullAfterEach()
    for (const text of ['one', 'two', 'three']) buffered.push(message(text))
    buffered.end()
    expect([heard, held()]).toEqual([['one'], 8])
    buffered.resume()
    expect([heard, held()]).toEqual([['one', 'two'], 5])
    buffered.resume()
    expect([heard, held()]).toEqual([['one', 'two', 'three', 'end'], 0])
    buffered.resume()
    expect(heard).toHaveLength(4)
  })

  it('delivers a failure after queued messages, and nothing later', () => {
    const { heard, buffered } = fullAfterEach()
    buffered.push(message('one'))
    buffered.push(message('two'))
    buffered.fail(gone)
    buffered.push(message('three'))
    buffered.end()
    buffered.resume()
    expect(heard).toEqual(['one', 'two', 'fail ended'])
  })

  it('drops queued messages on cancellation', () => {
    const { heard, buffered, held } = fullAfterEach()
    buffered.push(message('one'))
    buffered.push(message('two'))
    buffered.cancel()
    buffered.resume()
    buffered.fail(gone)
    expect([heard, held()]).toEqual([['one'], 0])
  })
})
