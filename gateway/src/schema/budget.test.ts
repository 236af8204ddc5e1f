import { describe, expect, it } from 'vitest'
import { checkKeyBudgets, type KeyBudget, keyBudgetRule, parseAmount } from './budget.ts'
import { formatPath } from './path.ts'

const budget: KeyBudget = {
  name: 'daily',
  limit: { unit: 'USD', amount: '0.008' },
  window: { rolling: '24h' },
}

function mistakes(...budgets: KeyBudget[]): string[] {
  const found: string[] = []
  checkKeyBudgets(budgets, (path, message) => found.push(`${formatPath(path)}: ${message}`))
  return found
}

describe('parseAmount', () => {
  it('is exact for nine decimals', () => {
    expect(parseAmount('usd', '0.000000001')).toBe(1_000)
    expect(parseAmount('usd', 1e-9)).toBe(1_000)
    expect(parseAmount('usd', 25.1)).toBe(25_100_000_000_000)
    expect(parseAmount('tokens', 5)).toBe(5)
  })

  it.each([
    ['usd', 0],
    ['usd', -1],
    ['usd', 1.2345678901],
    ['usd', 1e-10],
    ['usd', '1e3'],
    ['usd', 1e10],
    ['tokens', 0.5],
    ['tokens', 0],
    ['tokens', 1e300],
  ] as const)('rejects %s %s', (unit, amount) => {
    expect(parseAmount(unit, amount)).toBeUndefined()
  })
})

describe('checkKeyBudgets', () => {
  it('accepts budgets in dollars and tokens', () => {
    expect(
      mistakes(budget, {
        name: 'monthly tokens',
        limit: { unit: 'Tokens', amount: 1_000_000 },
        window: { calendar: 'month', timeZone: 'Europe/Berlin' },
        onBudgetExceeded: 'Audit',
      }),
    ).toEqual([])
  })

  it('reports amounts, windows, time zones and duplicate names', () => {
    expect(
      mistakes(
        { ...budget, limit: { unit: 'Tokens', amount: 1.5 }, window: { rolling: '30s' } },
        { ...budget, window: { calendar: 'day', timeZone: 'Mars' } },
        { ...budget, name: 'a"b', window: { rolling: '1h', timeZone: 'UTC' } },
      ),
    ).toEqual([
      '[0].limit.amount: must be a whole number of tokens, at least 1',
      '[0].window.rolling: must be from 1m to 366d',
      '[1].window.timeZone: must be a time zone of the IANA database, such as Europe/Berlin',
      '[2].window.timeZone: is for calendar windows: day, week or month',
      '[1].name: budget 1 of this list has the same name',
      '[2].name: must be printable ASCII without quotes and backslashes',
    ])
  })
})

describe('keyBudgetRule', () => {
  it('normalises the form of key records', () => {
    expect(keyBudgetRule(budget)).toEqual({
      name: 'daily',
      unit: 'usd',
      limit: 8_000_000_000,
      window: { kind: 'fixed', lengthMs: 86_400_000 },
      action: 'block',
      warnAt: undefined,
    })
  })
})
