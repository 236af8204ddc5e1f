import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRewriter, findHunks, writeBack } from './text-change.ts'

const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc
    .array(fc.constantFrom('a', 'mask', 'b ', ' ', '\n', '😀', '😁', 'word '), { maxLength: 20 })
    .map((list) => list.join('')),
)

function applied(before: string, after: string): string {
  let result = ''
  let copied = 0
  for (const { start, end, text: replacement } of findHunks(before, after)) {
    result += before.slice(copied, start) + replacement
    copied = end
  }
  return result + before.slice(copied)
}

describe('differences of texts', () => {
  it('lead from the one to the other', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(applied(before, after)).toBe(after)
      }),
    )
  })

  it('are found word by word', () => {
    expect(findHunks('call 555 or mail me@x now', 'call *** or mail *** now')).toEqual([
      { start: 5, end: 8, text: '***' },
      { start: 17, end: 21, text: '***' },
    ])
  })

  it('are one where too much differs, in bounded time', () => {
    const words = (word: string) => Array.from({ length: 50_000 }, (_, index) => `${word}${index}`).join(' ')
    const [before, after] = [words('a'), words('b')]
    expect(findHunks(before, after)).toHaveLength(1)
    expect(applied(before, after)).toBe(after)
  })
})

describe('writing back', () => {
  it('changes only the parts that changed', () => {
    expect(writeBack(['my mask', 'stays', 'a mask too'], ' ', 'my **** stays a **** too')).toEqual([
      'my ****',
      'stays',
      'a **** too',
    ])
  })

  it('puts the replacement of several parts into the first', () => {
    expect(writeBack(['one', 'two', 'three'], '\n', 'gone')).toEqual(['gone', '', ''])
  })

  it('puts a text into a part that was empty, if there is one', () => {
    expect(writeBack([''], ' ', 'x')).toEqual(['x'])
    expect(writeBack(['', ''], '', 'x')).toEqual(['x', ''])
    expect(writeBack([], ' ', 'x')).toBeUndefined()
  })

  it('retains all text of parts without separators', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), text, (parts, after) => {
        expect(writeBack(parts, '', after)?.join('')).toBe(after)
      }),
    )
  })

  it('leaves no word in that is gone', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), (parts) => {
        const before = parts.join(' ')
        const after = before.replaceAll('mask', '*')
        expect(writeBack(parts, ' ', after)?.join(' ')).not.toContain('mask')
      }),
    )
  })
})

describe('a rewriter', () => {
  it('turns a text in any pieces into the other', () => {
    fc.assert(
      fc.property(
        fc.array(
          text.filter((piece) => piece !== ''),
          { minLength: 1, maxLength: 10 },
        ),
        text,
        (pieces, after) => {
          const rewrite = createRewriter(pieces.join(''), after)
          expect(pieces.map(rewrite).join('')).toBe(after)
        },
      ),
    )
  })

  it('changes no piece that does not change', () => {
    const rewrite = createRewriter('Hello my mask is a mask.', 'Hello my **** is a ****.')
    expect(['Hello', ' my', ' ma', 'sk is', ' a', ' mask', '.'].map(rewrite)).toEqual([
      'Hello',
      ' my',
      ' ****',
      ' is',
      ' a',
      ' ****.',
      '',
    ])
  })
})
