import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../test/support/time-bound.ts'
import { compileCel } from './cel.ts'
import { isWorkBudgetExceeded, withSharedWorkBudget, workSpent } from './work-budget.ts'

const roots = new Set(['text', 'other', 'list', 'items'])

function evaluate(source: string, variables: object): unknown {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  return compiled.program.evaluate(variables)
}

const mebibyte = 1024 * 1024
const beyond = 'expression takes too many steps or too much work'

describe('work budget of an evaluation', () => {
  it('suffices for the texts of common requests', () => {
    const text = 'words of a user. '.repeat(mebibyte / 17)
    expect(evaluate('text.endsWith("never") || text.matches("(?i)never|nowhere")', { text })).toBe(false)
    expect(evaluate('text.lowerAscii().contains("never")', { text })).toBe(false)
  })

  it.each([
    'text.contains("never")',
    'text.matches("never|nowhere")',
    'text.lowerAscii() == "a"',
    'text.upperAscii() == "a"',
    'text.split(" ") == []',
    'text.replace("a", "b") == ""',
    'text.substring(1) == ""',
    'size(text) == 1',
    'ip(text) == ""',
    'double(text) == 1.0',
    'text in [other, other, other, other, other, other, other, other]',
    '(text + text).contains("never")',
    'text.contains("never") == uint(1)',
    'bytes(text) == b"a"',
    'list.exists(a, list.exists(b, a + b == 1))',
    'list + list == []',
    'list == items',
    'list.map(a, string(a)).join(text) == ""',
    '{"a": list} == {"a": items}',
  ])('stops %s on large values', async (source) => {
    const text = ' a'.repeat(8 * mebibyte)
    const list = Array.from({ length: 1_000_000 }, () => 0)
    const variables = { text, other: text.slice(1).concat(' '), list, items: [...list.slice(1), 1] }
    await expectBelow(500, () =>
      cpuMsOf(() => expect(() => evaluate(`${source} || true`, variables)).toThrow('too many steps')),
    )
  })

  it('includes keys of maps that an expression creates', () => {
    const entries = Array.from({ length: 1_000 }, (_, key) => `"${key}": 1`).join()
    const workOf = (source: string) => {
      evaluate(source, {})
      return workSpent()
    }
    const map = `[{${entries}}]`
    expect(
      workOf(`${map}.exists(m, m.exists(key, true))`) - workOf(`${map}.exists(m, m.size() > 0)`),
    ).toBeGreaterThan(9_999)
  })

  it('resets for each evaluation', () => {
    const text = 'a'.repeat(4 * mebibyte)
    const variables = { text, other: '' }
    expect(evaluate('text.contains("b")', variables)).toBe(false)
    expect(evaluate('text.contains("b")', variables)).toBe(false)
    expect(isWorkBudgetExceeded()).toBe(false)
    expect(workSpent()).toBeGreaterThan(4 * mebibyte)
  })

  it('applies to several evaluations together if shared', () => {
    const variables = { text: 'a'.repeat(4 * mebibyte) }
    const both = () => [1, 2].map(() => evaluate('text.contains("b")', variables))
    expect(() => withSharedWorkBudget(both)).toThrow(beyond)
    expect(isWorkBudgetExceeded()).toBe(true)
    expect(evaluate('text.contains("b")', variables)).toBe(false)
  })
})

describe('a shared work budget', () => {
  const search = () => evaluate('text.contains("b")', { text: 'a'.repeat(4 * mebibyte) })

  it('applies to nested shared budgets and to evaluations after them', () => {
    expect(() => withSharedWorkBudget(() => [withSharedWorkBudget(search), search()])).toThrow(beyond)
    expect(() => withSharedWorkBudget(() => [search(), withSharedWorkBudget(search)])).toThrow(beyond)
  })

  it('retains its rest after a nested budget of fewer units is exhausted', () => {
    const results = withSharedWorkBudget(() => {
      expect(() => withSharedWorkBudget(search, 1_000)).toThrow(beyond)
      return search()
    })
    expect(results).toBe(false)
  })
})

describe('patterns with a large state machine', () => {
  it.each(['[ab]*a[ab]{14}[xyz]', 'a..............b', '\\d{3}[a-z ]{20}x'])('%s cost more', (pattern) => {
    const source = `text.matches(${JSON.stringify(pattern)})`
    expect(() => evaluate(source, { text: 'ab'.repeat(mebibyte / 4) })).toThrow(beyond)
  })

  it.each(['sk-[A-Za-z0-9]{48}', '[0-9]{3}-[0-9]{2}-[0-9]{4}', '(?i)secret|password'])(
    '%s do not',
    (pattern) => {
      expect(evaluate(`text.matches(${JSON.stringify(pattern)})`, { text: 'ab'.repeat(mebibyte / 4) })).toBe(
        false,
      )
    },
  )
})
