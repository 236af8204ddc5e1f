import { describe, expect, it } from 'vitest'
import { createBudgetReports } from './budget-reports.ts'
import type { BudgetReport } from './budget-use.ts'

const window = { budget: 'llm/team/usd', value: '', windowStart: 0, windowEnd: 1_000 }
const update = (used: bigint) => ({ confirmed: [], totals: [{ ...window, used }] })

function reportsOf(results: ('delivered' | 'lost')[]) {
  const sent: BudgetReport[] = []
  const deliveries: (() => void)[] = []
  const reports = createBudgetReports({
    now: () => 0,
    send(report) {
      sent.push(report)
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      deliveries.push(() => (results.shift() === 'lost' ? reject(new Error('lost')) : resolve()))
      return promise
    },
  })
  async function deliver(): Promise<void> {
    deliveries.shift()?.()
    await new Promise(setImmediate)
  }
  return { reports, sent, deliver }
}

const amounts = (sent: readonly BudgetReport[]) => sent.map(({ uses }) => uses.map(({ others }) => others))

describe('createBudgetReports', () => {
  it('sends one report at a time and combines the updates meanwhile', async () => {
    const { reports, sent, deliver } = reportsOf([])
    for (const used of [1n, 2n, 3n]) reports.update(update(used))
    expect(amounts(sent)).toEqual([[1]])
    await deliver()
    await deliver()
    expect(amounts(sent)).toEqual([[1], [3]])
    await reports.first
    reports.update({ confirmed: [], totals: [] })
    expect(amounts(sent)).toEqual([[1], [3], []])
  })

  it('repeats a report that was lost with the next update', async () => {
    const { reports, sent, deliver } = reportsOf(['lost'])
    reports.update(update(1n))
    await deliver()
    reports.update({ confirmed: [], totals: [] })
    expect(amounts(sent)).toEqual([[1], [1]])
  })

  it('sends nothing after its end', async () => {
    const { reports, sent, deliver } = reportsOf([])
    reports.update(update(1n))
    reports.close()
    reports.update(update(2n))
    await deliver()
    expect(sent).toHaveLength(1)
  })
})
