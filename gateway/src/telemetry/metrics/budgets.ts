import type { MetricRegistry } from './families.ts'

/**
 * Decision of a budget about a request: `allowed`, `refused` above the limit, `audited` above the limit of a
 * budget that only reports, `warned` above its warning level, `unavailable` without current totals of the
 * database, `uncounted` without memory for another value. `unpriced` is a call without a price.
 */
export type BudgetDecision =
  | 'allowed'
  | 'refused'
  | 'audited'
  | 'warned'
  | 'unavailable'
  | 'uncounted'
  | 'unpriced'

/** Meter of one budget. */
export type BudgetMeter = { count(decision: BudgetDecision): void }

export function createBudgetMeters(registry: MetricRegistry): (budget: string) => BudgetMeter {
  const decisions = registry.counter({
    name: 'tollgate_budget_decisions_total',
    help: 'Decisions of budgets, and calls without a price under a budget in US dollars.',
    labels: ['budget', 'decision'],
  })
  return (budget) => {
    const slots = {
      allowed: decisions.slot(budget, 'allowed'),
      refused: decisions.slot(budget, 'refused'),
      audited: decisions.slot(budget, 'audited'),
      warned: decisions.slot(budget, 'warned'),
      unavailable: decisions.slot(budget, 'unavailable'),
      uncounted: decisions.slot(budget, 'uncounted'),
      unpriced: decisions.slot(budget, 'unpriced'),
    }
    return {
      count(decision) {
        slots[decision].value += 1
      },
    }
  }
}
