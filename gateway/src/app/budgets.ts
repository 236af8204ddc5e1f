import { setTimeout as delay } from 'node:timers/promises'
import { hasBudgets } from '../config/budget-snapshot.ts'
import type { Config } from '../config/schema.ts'
import type { DataPlane } from '../data-plane/data-plane.ts'
import { createBudgetReports } from '../ledger/budget-reports.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../telemetry/log.ts'

/** Totals of budgets from the ledger to the data planes. */
export type BudgetFeed = {
  /** Reads totals from now on if the configuration has budgets. */
  use(config: Config): void
  /** Resolves at the first totals if they are read, or after a time limit. */
  ready(): Promise<void>
  close(): void
}

export type BudgetFeedOptions = {
  /** Undefined without a database: budgets count in memory. */
  ledger: Pick<Ledger, 'watchBudgets'> | undefined
  dataPlane: Pick<DataPlane, 'expectBudgets' | 'reportBudgets'>
  clock: Clock
  log: Log
}

/** Wait for the totals at start. */
const readyWithinMs = 3_000

/** Creates the feed. Without budgets no totals are read, hence the database is not polled. */
export function createBudgetFeed({ ledger, dataPlane, clock, log }: BudgetFeedOptions): BudgetFeed {
  const reports = createBudgetReports({ send: dataPlane.reportBudgets, now: clock.now })
  let isUsed = false

  async function watch(source: NonNullable<typeof ledger>): Promise<void> {
    try {
      await dataPlane.expectBudgets()
    } catch (error) {
      log.error({ err: error }, 'totals of budgets not expected: no data plane responds')
    }
    source.watchBudgets(reports.update)
  }

  return {
    use(config) {
      if (isUsed || !hasBudgets(config)) return
      isUsed = true
      if (ledger === undefined)
        log.warn({ path: 'config.logging.database' }, 'budgets counted in memory: no database configured')
      else void watch(ledger)
    },
    async ready() {
      if (isUsed && ledger !== undefined)
        await Promise.race([reports.first, delay(readyWithinMs, undefined, { ref: false })])
    },
    close: reports.close,
  }
}
