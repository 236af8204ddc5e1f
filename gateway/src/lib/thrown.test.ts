import { describe, expect, it } from 'vitest'
import { asError, messageOf } from './thrown.ts'

describe('messageOf', () => {
  it.each([
    [new TypeError('reset'), 'reset'],
    ['text', 'text'],
    [undefined, 'undefined'],
  ])('returns the message of %s', (error, message) => {
    expect(messageOf(error)).toBe(message)
  })
})

describe('asError', () => {
  it('returns an error unchanged', () => {
    const error = new Error('reset')
    expect(asError(error)).toBe(error)
  })

  it('wraps another value', () => {
    expect(asError(5)).toEqual(new Error('5'))
  })
})
