import { describe, expect, it } from 'vitest'
import { allowed, count } from './count.ts'

describe('count', () => {
  it('counts words and reports limited ones with line and sentence', () => {
    const text = 'A threshold. Returns\n what the store\nholds; no more. Whats.'
    const { words, findings } = count([{ path: 'a.ts', line: 7, text }])
    expect(words).toBe(10)
    expect(findings).toEqual([
      [{ path: 'a.ts', line: 8, word: 'what', sentence: 'Returns what the store holds;' }],
      [{ path: 'a.ts', line: 9, word: 'holds', sentence: 'Returns what the store holds;' }],
    ])
  })

  it('ignores case and contractions', () => {
    const { findings } = count([{ path: 'a.ts', line: 1, text: "WHAT'S this? Who’s that?" }])
    expect(findings[0]?.map(({ word }) => word)).toEqual(['what', 'who'])
  })
})

describe('allowed', () => {
  it.each([
    [0, 3],
    [999, 3],
    [1999, 5],
    [20_000, 60],
  ])('of %i words at 3 per 1,000 is %i', (words, expected) => {
    expect(allowed(words, 3)).toBe(expected)
  })
})
