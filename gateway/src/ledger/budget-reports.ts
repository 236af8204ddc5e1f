import { type BudgetReport, createBudgetTotals } from './budget-use.ts'
import type { BudgetUpdate } from './writer/protocol.ts'

/** Reports of budgets from the writer of the ledger to the data planes. */
export type BudgetReports = {
  /** Accepts an update of the writer, in order. */
  update(update: BudgetUpdate): void
  /** Resolves when the data planes have the first report. */
  readonly first: Promise<void>
  /** Sends no more. */
  close(): void
}

export type BudgetReportOptions = {
  /** Delivers a report to the data planes. Rejects if none received it. */
  send(report: BudgetReport): Promise<void>
  now(): number
}

/**
 * Sends one report at a time. Updates that arrive meanwhile are combined; a report that was not delivered is
 * repeated with the next update.
 */
export function createBudgetReports({ send, now }: BudgetReportOptions): BudgetReports {
  const totals = createBudgetTotals(now)
  const first = Promise.withResolvers<void>()
  let state: 'idle' | 'sending' | 'behind' | 'closed' = 'idle'

  async function sendAll(): Promise<void> {
    while (state === 'behind') {
      state = 'sending'
      const report = totals.report()
      try {
        await send(report)
        first.resolve()
      } catch {
        totals.lost(report)
      }
    }
    if (state === 'sending') state = 'idle'
  }

  return {
    update(update) {
      totals.apply(update)
      if (state === 'idle') {
        state = 'behind'
        void sendAll()
      } else if (state === 'sending') state = 'behind'
    },
    first: first.promise,
    close() {
      state = 'closed'
    },
  }
}
