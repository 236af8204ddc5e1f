import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diffText } from './text-diff.ts'

describe('diffText', () => {
  it('marks a masked word', () => {
    expect(diffText('write to bob@example.com today', 'write to <EMAIL> today')).toEqual([
      { kind: 'same', text: 'write to ' },
      { kind: 'removed', text: 'bob@example.com' },
      { kind: 'added', text: '<EMAIL>' },
      { kind: 'same', text: ' today' },
    ])
  })

  it('contains both texts, also very long ones', () => {
    const text = fc.oneof(fc.string(), fc.lorem({ maxCount: 30 }), fc.constant('a '.repeat(2_000)))
    fc.assert(
      fc.property(text, text, (before, after) => {
        const segments = diffText(before, after)
        const without = (kind: string) =>
          segments.flatMap((segment) => (segment.kind === kind ? [] : [segment.text])).join('')
        expect(without('added')).toBe(before)
        expect(without('removed')).toBe(after)
      }),
    )
  })
})
