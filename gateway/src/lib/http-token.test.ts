import { describe, expect, it } from 'vitest'
import { isToken } from './http-token.ts'

describe('isToken', () => {
  it('accepts every character of the grammar', () => {
    const marks = "!#$%&'*+-.^_`|~"
    expect(['GET', 'x-name', 'A1', marks, ...marks].every(isToken)).toBe(true)
  })

  it.each(['', ' ', 'a b', 'a:b', 'a/b', '"a"', 'a\n', 'é', 'a,b', '[a]', '\u0000'])('rejects %j', (text) => {
    expect(isToken(text)).toBe(false)
  })
})
