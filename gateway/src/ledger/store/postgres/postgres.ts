import {
  createPostgresPool,
  type Query,
  readPostgresUrl,
  sqlState,
} from '../../../database/postgres/client.ts'
import { migrate } from '../../../database/postgres/migrate.ts'
import type { Clock } from '../../../lib/clock.ts'
import { messageOf } from '../../../lib/thrown.ts'
import { planBatch } from '../batch-plan.ts'
import { BatchRefused, isValueError } from '../batch-refused.ts'
import { repairBatch } from '../repair.ts'
import type { LedgerBatch, LedgerStore, WriteResult } from '../store.ts'
import { postgresLedgerMigrations } from './migrations.ts'
import { deleteRequests, prune, pruneUsage } from './prune.ts'
import { readTotals } from './totals.ts'
import { writePlan } from './write.ts'

export type PostgresLedgerSettings = {
  /** `postgres://…`. Throws if it is not valid. */
  readonly url: string
  /** Configuration field of the URL, for errors. */
  readonly field: string
  readonly maxConnections: number
}

/** Advisory lock of migrations; an arbitrary number. */
const lockNumber = '7810205312474'

const undefinedTable = '42P01'

/** Creates the ledger in Postgres, which replicas may share. Connects on first use. */
export function createPostgresLedgerStore(settings: PostgresLedgerSettings, clock: Clock): LedgerStore {
  const ignore = () => undefined
  const config = readPostgresUrl(settings.url, settings.field)
  const pool = createPostgresPool(config, settings.maxConnections, { onBroken: ignore, onOutage: ignore })
  let migrated: Promise<void> | undefined
  let closed: Promise<void> | undefined

  /** Migrates the schema once, and again after a failure or if the tables are missing. */
  const prepare = async (): Promise<void> => {
    migrated ??= pool.use((query) => migrate(query, postgresLedgerMigrations, lockNumber))
    try {
      await migrated
    } catch (error) {
      migrated = undefined
      throw error
    }
  }

  const use = async <T>(run: (query: Query) => Promise<T>): Promise<T> => {
    await prepare()
    try {
      return await pool.use(run)
    } catch (error) {
      if (sqlState(error) === undefinedTable) migrated = undefined
      throw error
    }
  }

  const write = (batch: LedgerBatch): Promise<WriteResult> => {
    const plan = planBatch(batch)
    return use((query) => writePlan(query, batch, plan, clock.now()))
  }

  return {
    open: prepare,
    async write(batch) {
      try {
        return await write(repairBatch(batch, 'valid'))
      } catch (error) {
        if (!isRefusedContent(error)) throw error
      }
      try {
        return await write(repairBatch(batch, 'plain'))
      } catch (error) {
        throw isRefusedContent(error) ? new BatchRefused(messageOf(error), error) : error
      }
    },
    budgetTotals: (since, now) => use((query) => readTotals(query, since, now)),
    pruneRequests: (before, most) => use((query) => prune(query, deleteRequests(before, most))),
    pruneUsage: (before, most) => use((query) => pruneUsage(query, before, most)),
    async close() {
      closed ??= pool.close()
      await closed
    },
  }
}

/** SQLSTATE classes of errors that a repetition does not end: data, constraints, limits of the server. */
function isRefusedContent(error: unknown): boolean {
  return isValueError(error) || /^(22|23|54)/.test(sqlState(error) ?? '')
}
