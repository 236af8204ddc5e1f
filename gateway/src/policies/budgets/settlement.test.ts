import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { BudgetCharge } from '../../ledger/entry.ts'
import type { Settlement } from '../../pipeline/limits/limits.ts'
import { accountPrefix, budgetAccounts } from './accounts.ts'
import { compileBudgets } from './budgets.ts'

const now = Date.parse('2026-11-22T10:00:00Z')
const window = { windowStart: now - 1000, windowEnd: now + 1000 }
const tokens = { budget: 'llm/team/tokens', value: 'a', ...window }
const dollars = { budget: 'llm/money/usd', value: '', ...window }

/** Uses of the budgets after a settlement, in a process that has charged 100 to each, and its charges. */
function settle(settlement: Partial<Settlement>, hasDatabase = false) {
  const clock = { now: () => now, monotonic: () => now, advance: () => undefined }
  const context = { ...fixtureContext(), clock }
  const accounts = budgetAccounts(context)
  const keyOf = ({ budget, value, windowStart }: typeof tokens) => accountPrefix(budget, windowStart) + value
  for (const place of [tokens, dollars])
    accounts.add(keyOf(place), 100, { endsAt: place.windowEnd, now: now - 500 })
  if (hasDatabase) accounts.expectReports()
  const exchange = fixtureExchange()
  exchange.llm = {
    operation: { operation: 'batch', api: 'batches' },
    estimate: undefined,
    message: undefined,
    settlement: { tokens: -60, picodollars: 25, budgets: [tokens, dollars], isOwn: true, ...settlement },
  }
  compileBudgets([], context).onEnd?.(exchange)
  const used = [tokens, dollars].map((place) => accounts.find(keyOf(place))?.used)
  const charges = (exchange.charges ?? []).map(({ budget, amount }: BudgetCharge) => [budget, amount])
  return { used, charges }
}

describe('a settlement', () => {
  it('corrects each budget of the earlier call in its unit', () => {
    expect(settle({})).toEqual({
      used: [40, 125],
      charges: [
        [tokens.budget, -60],
        [dollars.budget, 25],
      ],
    })
  })

  it('without a difference charges nothing', () => {
    expect(settle({ tokens: 0, picodollars: 0 })).toEqual({ used: [100, 100], charges: [] })
  })

  it('of a call of another process requires a database', () => {
    expect(settle({ isOwn: false })).toEqual({ used: [100, 100], charges: [] })
    expect(settle({ isOwn: false }, true).used).toEqual([40, 125])
  })

  it('in a window that has ended corrects the ledger only', () => {
    const ended = { ...tokens, windowStart: now - 2000, windowEnd: now }
    const { used, charges } = settle({ budgets: [ended] })
    expect([used, charges]).toEqual([[100, 100], [[tokens.budget, -60]]])
  })
})
