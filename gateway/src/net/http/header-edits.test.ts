import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isHeaderValue, isPlainHeaderValue } from './header-edits.ts'

describe('isPlainHeaderValue', () => {
  it('accepts visible ASCII with spaces inside', () => {
    for (const text of ['a', 'a b', '/path?x=1', '~!']) expect(isPlainHeaderValue(text)).toBe(true)
  })

  it.each(['', ' a', 'a ', 'a\n', 'a\u0000b', 'a\tb', 'ü', 'a\u007f', 'x'.repeat(129)])(
    'leaves %j to the pattern',
    (text) => {
      expect(isPlainHeaderValue(text)).toBe(false)
    },
  )

  it('accepts valid values only', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', ' ', '\t', '\r', '\n', '\u0000', '~', '\u007f', 'ü'),
    })
    fc.assert(fc.property(text, (value) => !isPlainHeaderValue(value) || isHeaderValue(value)))
  })
})
