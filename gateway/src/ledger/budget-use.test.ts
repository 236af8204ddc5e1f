import { describe, expect, it } from 'vitest'
import { createBudgetTotals } from './budget-use.ts'

const window = { budget: 'llm/team/usd', value: 'a', windowStart: 0, windowEnd: 1_000 }

describe('createBudgetTotals', () => {
  it('reports totals without the charges of the process', () => {
    const totals = createBudgetTotals(() => 0)
    totals.apply({ confirmed: [{ ...window, amount: 30 }], totals: [] })
    totals.apply({ confirmed: [], totals: [{ ...window, used: 100n }] })
    expect(totals.report()).toEqual({ number: 1, uses: [{ ...window, others: 70 }] })
  })

  it('corrects a total that contained a charge with an unknown result', () => {
    const totals = createBudgetTotals(() => 0)
    totals.apply({ confirmed: [], totals: [{ ...window, used: 30n }] })
    expect(totals.report().uses).toEqual([{ ...window, others: 30 }])
    totals.apply({ confirmed: [{ ...window, amount: 30 }], totals: [] })
    expect(totals.report().uses).toEqual([{ ...window, others: 0 }])
  })

  it('reports a refund of another process', () => {
    const totals = createBudgetTotals(() => 0)
    totals.apply({ confirmed: [{ ...window, amount: 30 }], totals: [{ ...window, used: 30n }] })
    totals.apply({ confirmed: [], totals: [{ ...window, used: 10n }] })
    expect(totals.report().uses).toEqual([{ ...window, others: -20 }])
  })

  it('reports changes once, and its number always', () => {
    const totals = createBudgetTotals(() => 0)
    totals.apply({ confirmed: [], totals: [{ ...window, used: 30n }] })
    totals.report()
    expect(totals.report()).toEqual({ number: 2, uses: [] })
  })

  it('repeats a report that was lost', () => {
    const totals = createBudgetTotals(() => 0)
    totals.apply({ confirmed: [], totals: [{ ...window, used: 30n }] })
    totals.lost(totals.report())
    expect(totals.report().uses).toEqual([{ ...window, others: 30 }])
  })

  it('is exact above the range of safe integers', () => {
    const totals = createBudgetTotals(() => 0)
    const amount = Number.MAX_SAFE_INTEGER
    for (let count = 0; count < 5; count += 1)
      totals.apply({ confirmed: [{ ...window, amount }], totals: [] })
    totals.apply({ confirmed: [], totals: [{ ...window, used: 5n * BigInt(amount) + 3n }] })
    expect(totals.report().uses[0]?.others).toBe(3)
  })

  it('forgets windows after their end', () => {
    let time = 0
    const totals = createBudgetTotals(() => time)
    totals.apply({ confirmed: [{ ...window, amount: 30 }], totals: [] })
    time = 8_000_000
    totals.report()
    totals.apply({ confirmed: [], totals: [{ ...window, used: 30n }] })
    expect(totals.report().uses[0]?.others).toBe(30)
  })
})
