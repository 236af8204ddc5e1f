import type { BudgetCharge } from './entry.ts'
import type { BudgetTotal } from './store/store.ts'
import type { BudgetUpdate } from './writer/protocol.ts'

/**
 * Use of a budget in a window, without the entries of this process. A later one of the same window replaces
 * an earlier one.
 */
export type BudgetUse = {
  readonly budget: string
  readonly value: string
  readonly windowStart: number
  readonly windowEnd: number
  /**
   * Tokens or picodollars that other processes have charged, and this one before its start, less those that
   * they have refunded.
   */
  readonly others: number
}

/** What the database holds about budgets: the changes since the report before. */
export type BudgetReport = {
  /** From 1, in order. */
  readonly number: number
  readonly uses: readonly BudgetUse[]
}

/** Separates the charges of this process from the totals of the database. */
export type BudgetTotals = {
  /** Applies an update of the writer; updates arrive in order. */
  apply(update: BudgetUpdate): void
  /** Changes since the last report. A report without changes confirms that the database responds. */
  report(): BudgetReport
  /** Repeats the changes of a report that was not delivered in the next one. */
  lost(report: BudgetReport): void
}

type State = {
  readonly identity: Pick<BudgetCharge, 'budget' | 'value' | 'windowStart'>
  windowEnd: number
  /** Undefined before the database has reported it. */
  total: bigint | undefined
  confirmed: bigint
}

/**
 * Creates the totals of a process. Charges count in the process as soon as they are made and in
 * the database as soon as they are committed, so each total is reported without the charges of the process.
 * Forgets windows an hour after their end.
 */
export function createBudgetTotals(now: () => number): BudgetTotals {
  const states = new Map<string, State>()
  const changed = new Set<State>()
  let lastNumber = 0
  let prunedAt = now()

  function stateOf(window: Omit<BudgetTotal, 'used'>): State {
    const { budget, value, windowStart, windowEnd } = window
    const key = keyOf(window)
    let state = states.get(key)
    if (state === undefined) {
      state = { identity: { budget, value, windowStart }, windowEnd, total: undefined, confirmed: 0n }
      states.set(key, state)
    }
    state.windowEnd = windowEnd
    changed.add(state)
    return state
  }

  function prune(): void {
    const time = now()
    if (time - prunedAt < forgetAfterMs) return
    prunedAt = time
    for (const [key, { windowEnd }] of states) if (windowEnd < time - forgetAfterMs) states.delete(key)
  }

  return {
    apply({ confirmed, totals }) {
      for (const charge of confirmed) stateOf(charge).confirmed += BigInt(charge.amount)
      for (const total of totals) stateOf(total).total = total.used
    },
    lost({ uses }) {
      for (const use of uses) {
        const state = states.get(keyOf(use))
        if (state !== undefined) changed.add(state)
      }
    },
    report() {
      const uses = [...changed].map(useOf)
      changed.clear()
      prune()
      lastNumber += 1
      return { number: lastNumber, uses }
    },
  }
}

const forgetAfterMs = 3_600_000

function keyOf({
  budget,
  value,
  windowStart,
}: Pick<BudgetTotal, 'budget' | 'value' | 'windowStart'>): string {
  return JSON.stringify([budget, value, windowStart])
}

function useOf({ identity, windowEnd, total, confirmed }: State): BudgetUse {
  // Negative after another process has settled a charge of this one.
  const others = total === undefined ? 0n : total - confirmed
  return { ...identity, windowEnd, others: Number(others) }
}
