import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sealText, unsealText } from './sealed-text.ts'

const key = randomBytes(32)

describe('sealed text', () => {
  it('is read with its key only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const sealed = sealText(key, text)
        expect(unsealText(key, sealed)).toBe(text)
        expect(unsealText(randomBytes(32), sealed)).toBeUndefined()
      }),
    )
  })

  it('is refused after any change', () => {
    const sealed = sealText(key, 'content')
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.constantFrom('A', 'b', '_', '=', ''), (index, other) => {
        const changed = sealed.slice(0, index) + other + sealed.slice(index + 1)
        expect(unsealText(key, changed)).toBe(changed === sealed ? 'content' : undefined)
      }),
    )
    for (const text of ['', 'a', `${sealed}A`, sealed.slice(0, 20)])
      expect(unsealText(key, text)).toBeUndefined()
  })
})
