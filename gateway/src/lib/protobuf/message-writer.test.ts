import { describe, expect, it } from 'vitest'
import { createMessageWriter } from './message-writer.ts'

describe('the writer of messages', () => {
  it('discards a message whose encoder failed', () => {
    const writer = createMessageWriter()
    const encode = (value: number) => {
      writer.start()
      writer.begin(1)
      writer.integer(2, value)
      writer.end()
      return writer.finish()
    }
    const expected = encode(-1)
    expect(() => encode(-1.5)).toThrow(RangeError)
    expect(encode(-1)).toEqual(expected)
    expect(() => writer.end()).toThrow('not nested')
  })
})
