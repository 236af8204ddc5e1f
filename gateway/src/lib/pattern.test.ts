import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../test/support/time-bound.ts'
import { compilePattern, createPatternCache } from './pattern.ts'

function pattern(source: string) {
  const compiled = compilePattern(source)
  if (!compiled.ok) throw new Error(compiled.message)
  return compiled
}

describe('a pattern', () => {
  it('matches anywhere in the text unless it is anchored', () => {
    expect(pattern('b+').test('abbc')).toBe(true)
    expect(pattern('^b+$').test('abbc')).toBe(false)
    expect(pattern('(?i)SECRET').test('a secret')).toBe(true)
  })

  it('returns the same result for repeated calls', () => {
    const compiled = pattern('a')
    expect([compiled.test('a'), compiled.test('a'), compiled.test('b'), compiled.test('a')]).toEqual([
      true,
      true,
      false,
      true,
    ])
  })

  it('replaces every match with literal text', () => {
    expect(pattern('\\d+').mask('call 12 or 345', '<$1&\\>')).toBe('call <$1&\\> or <$1&\\>')
  })

  it.each(['(', 'a{2,1}', '[z-a]', '(?=a)', '\\1', '*'])('refuses %s', (source) => {
    expect(compilePattern(source)).toMatchObject({
      ok: false,
      message: expect.stringContaining('invalid regular expression'),
    })
  })

  it('does not replace empty matches', () => {
    expect(pattern('\\b').mask('two words', '<masked>')).toBe(undefined)
    expect(pattern('\\b(x|)').mask('x two', '<masked>')).toBe('<masked> two')
  })

  it('finds non-empty matches behind empty ones', () => {
    expect(pattern('\\b').finds('two words')).toBe(false)
    expect(pattern('\\b(w|)').finds('two words')).toBe(true)
    expect(pattern('x').finds('two words')).toBe(false)
    expect(pattern('x').mask('two words', '')).toBe(undefined)
  })

  it('rejects patterns of excessive size', () => {
    expect(compilePattern('a'.repeat(5000)).ok).toBe(false)
    expect(compilePattern('((a{100}){100}){100}').ok).toBe(false)
  })

  it('takes time linear in the text', async () => {
    for (const source of ['^(a+)+$', '(a|a?)+b', '(?i)^(([a-z])+.)+[A-Z]([a-z])+$', '(x+x+)+y']) {
      await expectBelow(3_000, () => cpuMsOf(() => pattern(source).test(`${'a'.repeat(20_000)}!`)))
    }
  })
})

describe('the pattern cache', () => {
  it('returns the compiled pattern, or undefined for an invalid one', () => {
    const cached = createPatternCache(2)
    expect(cached('a')?.test('cab')).toBe(true)
    expect(cached('(')).toBeUndefined()
    expect(cached('(')).toBeUndefined()
    expect(cached('a')).toBe(cached('a'))
  })

  it('does not exceed its limit', () => {
    const cached = createPatternCache(2)
    const first = cached('a')
    cached('b')
    cached('c')
    expect(cached('a')).not.toBe(first)
  })
})
