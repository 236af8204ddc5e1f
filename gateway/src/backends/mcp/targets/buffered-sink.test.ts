import { describe, expect, it } from 'vitest'
import type { Message, TargetFailure } from '../message/message.ts'
import { createOutlet } from './buffered-sink.ts'

function message(text: string): Message {
  return { text, value: {} }
}

/** An outlet whose sink is full after each message. */
function fullAfterEach() {
  const heard: string[] = []
  let held = 0
  const outlet = createOutlet(
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
  return { heard, outlet, held: () => held }
}

const gone: TargetFailure = { kind: 'ended', reason: 'gone' }

describe('an outlet', () => {
  it('holds messages back while the sink is full, and ends only after them', () => {
    const { heard, outlet, held } = fullAfterEach()
    for (const text of ['one', 'two', 'three']) outlet.push(message(text))
    outlet.end()
    expect([heard, held()]).toEqual([['one'], 8])
    outlet.resume()
    expect([heard, held()]).toEqual([['one', 'two'], 5])
    outlet.resume()
    expect([heard, held()]).toEqual([['one', 'two', 'three', 'end'], 0])
    outlet.resume()
    expect(heard).toHaveLength(4)
  })

  it('passes on a failure after what came before it, and nothing after', () => {
    const { heard, outlet } = fullAfterEach()
    outlet.push(message('one'))
    outlet.push(message('two'))
    outlet.fail(gone)
    outlet.push(message('three'))
    outlet.end()
    outlet.resume()
    expect(heard).toEqual(['one', 'two', 'fail ended'])
  })

  it('drops what waits when it is cancelled', () => {
    const { heard, outlet, held } = fullAfterEach()
    outlet.push(message('one'))
    outlet.push(message('two'))
    outlet.cancel()
    outlet.resume()
    outlet.fail(gone)
    expect([heard, held()]).toEqual([['one'], 0])
  })
})
