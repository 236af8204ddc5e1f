import { describe, expect, it } from 'vitest'
import { formatPath } from '../../schema/path.ts'
import { type BudgetConfig, budgetRule, budgetVariables, checkBudgets } from './config.ts'
import { formatAmount } from './reply.ts'

const budget: BudgetConfig = {
  name: 'team',
  limit: { usd: 25.5 },
  window: 'month',
  timeZone: 'Europe/Berlin',
}

function mistakes(...budgets: BudgetConfig[]): string[] {
  const found: string[] = []
  checkBudgets(budgets, budgetVariables, (path, message) => found.push(`${formatPath(path)}: ${message}`))
  return found
}

describe('checkBudgets', () => {
  it('accepts lengths and calendar windows', () => {
    const windows = ['1h', '24h', '7d', '30d', '366d', '1m'].map((window) => ({
      name: window,
      limit: { tokens: 5 },
      window,
    }))
    expect(mistakes(budget, ...windows)).toEqual([])
  })

  it('reports windows, time zones, amounts, expressions and names', () => {
    expect(
      mistakes(
        { ...budget, window: 'fortnight', timeZone: undefined },
        { ...budget, name: 'b', window: '400d' },
        { ...budget, name: 'c', limit: { usd: 0 }, timeZone: 'Mars' },
        { ...budget, name: 'd', key: 'other.field', when: 'request.' },
        { ...budget, name: 'd\n' },
      ),
    ).toEqual([
      '[0].window: must be a duration such as 24h, or day, week or month',
      '[1].window: must be from 1m to 366d',
      '[1].timeZone: is for calendar windows: day, week or month',
      '[2].limit.usd: must be US dollars greater than 0, at most 1000000000, with at most nine decimals',
      '[2].timeZone: must be a time zone of the IANA database, such as Europe/Berlin',
      expect.stringContaining('[3].key: unknown variable "other"'),
      expect.stringContaining('[3].when: '),
      '[4].name: must be printable ASCII without quotes and backslashes',
    ])
  })
})

describe('budgetRule', () => {
  it('has dollars in picodollars', () => {
    expect(budgetRule(budget)).toMatchObject({
      unit: 'usd',
      limit: 25_500_000_000_000,
      window: { kind: 'calendar', unit: 'month', timeZone: 'Europe/Berlin' },
      action: 'block',
    })
  })
})

describe('formatAmount', () => {
  it.each([
    ['usd', 0, '0'],
    ['usd', 1, '0.000000000001'],
    ['usd', 8_000_000_000, '0.008'],
    ['usd', 2_500_000_000_000, '2.5'],
    ['usd', 1e21, '1000000000'],
    ['tokens', 123, '123'],
  ] as const)('formats %s %s', (unit, amount, text) => {
    expect(formatAmount(unit, amount)).toBe(text)
  })
})
