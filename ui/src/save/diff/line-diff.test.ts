import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { diffLines } from './line-diff.ts'

const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 }).map((lines) => lines.join('\n'))

it('both texts can be read from a comparison', () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after)
      const join = (kind: string) =>
        lines
          .filter((line) => line.kind === 'same' || line.kind === kind)
          .map((line) => line.text)
          .join('\n')
      expect(join('removed')).toBe(before)
      expect(join('added')).toBe(after)
    }),
  )
})

it('a change of one line is one removed and one added line', () => {
  expect(diffLines('a\nb\nc\n', 'a\nx\nc\n')).toEqual([
    { kind: 'same', text: 'a', before: 1, after: 1 },
    { kind: 'removed', text: 'b', before: 2 },
    { kind: 'added', text: 'x', after: 2 },
    { kind: 'same', text: 'c', before: 3, after: 3 },
  ])
})

it('very different texts are compared in bounded time', () => {
  const many = (word: string) => Array.from({ length: 5_000 }, (_, index) => `${word}${index}`).join('\n')
  const lines = diffLines(many('a'), many('b'))
  expect(lines).toHaveLength(10_000)
})
