import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseUnavailable } from '../../../database/database-unavailable.ts'
import { createSqliteConnection } from '../../../database/sqlite/connection.ts'
import { describeError, isBusy, isRefusedContent } from '../../../database/sqlite/errors.ts'
import type { Clock } from '../../../lib/clock.ts'
import { planBatch, writtenBefore } from '../batch-plan.ts'
import { BatchRefused, isValueError } from '../batch-refused.ts'
import { repairBatch } from '../repair.ts'
import type { BudgetTotal, LedgerStore, WriteResult } from '../store.ts'
import { sqliteLedgerMigrations } from './migrations.ts'
import { pruneRequests, pruneUsage } from './prune.ts'
import {
  lastNumberOf,
  prepareStatements,
  type Statements,
  selectTotals,
  settleOnce,
  writePlan,
} from './statements.ts'

/** Limit for acquiring the lock of all writers of the file. */
const lockWaitMs = 10_000

/**
 * Creates the ledger in a SQLite file, for a thread without traffic: statements block. Waits for the lock of
 * other processes do not.
 */
export function createSqliteLedgerStore(path: string, clock: Clock): LedgerStore {
  let statements: { readonly db: DatabaseSync; readonly prepared: Statements } | undefined
  let isReplaced = false
  const connection = createSqliteConnection(path, sqliteLedgerMigrations, {
    beforeClose: () => {
      statements = undefined
    },
    onReplaced: () => {
      isReplaced = true
    },
    openWaitMs: 0,
  })

  const prepare = (db: DatabaseSync): Statements => {
    if (statements?.db !== db) statements = { db, prepared: prepareStatements(db) }
    return statements.prepared
  }

  const unavailable = (error: unknown): DatabaseUnavailable =>
    error instanceof DatabaseUnavailable ? error : new DatabaseUnavailable(describeError(error, path), error)

  let last: Promise<unknown> = Promise.resolve()

  /** Commits the changes of `run`, one call after another; nothing if it throws. */
  const inWrite = <T>(run: (db: DatabaseSync) => T): Promise<T> => {
    const result = last.then(() => commit(run))
    last = result.catch(() => undefined)
    return result
  }

  const commit = async <T>(run: (db: DatabaseSync) => T): Promise<T> => {
    try {
      const db = await connection.beginWrite(lockWaitMs)
      const result = run(db)
      connection.commit()
      return result
    } catch (error) {
      connection.rollback()
      throw error
    }
  }

  const write = async (batch: Parameters<LedgerStore['write']>[0]): Promise<WriteResult> => {
    const plan = planBatch(batch)
    return await inWrite((db) => {
      const prepared = prepare(db)
      const earlier = writtenBefore(batch, lastNumberOf(prepared, batch))
      if (earlier !== undefined) return earlier
      const at = clock.now()
      const settled = settleOnce(prepared, batch, at)
      const settledPlan = settled === batch ? plan : planBatch(settled)
      return { kind: 'written', totals: writePlan(prepared, { ...settled, at }, settledPlan) }
    })
  }

  const readTotals = (since: number | undefined, now: number): { totals: BudgetTotal[]; since: number } => {
    const { writer } = connection.current()
    const from = isReplaced ? undefined : since
    const result = selectTotals(prepare(writer), from, now)
    isReplaced = false
    return result
  }

  return {
    async open() {
      const deadline = performance.now() + lockWaitMs
      for (;;) {
        try {
          connection.current()
          return
        } catch (error) {
          if (!isBusy(error) || performance.now() > deadline) throw unavailable(error)
          await delay(5 + 20 * Math.random())
        }
      }
    },
    async write(batch) {
      try {
        return await write(repairBatch(batch, 'valid'))
      } catch (error) {
        if (!isRefused(error)) throw unavailable(error)
      }
      return await write(repairBatch(batch, 'plain')).catch((error: unknown) => {
        throw isRefused(error) ? new BatchRefused(describeError(error, path), error) : unavailable(error)
      })
    },
    async budgetTotals(since, now) {
      try {
        return readTotals(since, now)
      } catch (error) {
        throw unavailable(error)
      }
    },
    pruneRequests: (before, most) =>
      inWrite((db) => pruneRequests(db, before, most)).catch((error: unknown) => {
        throw unavailable(error)
      }),
    pruneUsage: (before, most) =>
      inWrite((db) => pruneUsage(db, before, most)).catch((error: unknown) => {
        throw unavailable(error)
      }),
    async close() {
      connection.close()
    },
  }
}

function isRefused(error: unknown): boolean {
  return isRefusedContent(error) || isValueError(error)
}
