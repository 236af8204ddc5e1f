import type { Migrations } from '../migrations.ts'
import { createPostgresPool, type PostgresPool, type Query, readPostgresUrl, sqlState } from './client.ts'
import { migrate } from './migrate.ts'

export type MigratedPoolOptions = {
  readonly url: string
  readonly max: number
  readonly migrations: Migrations
  /** Advisory lock of the migrations; an arbitrary number. */
  readonly lockNumber: string
  /** Configuration field of the URL, for errors. */
  readonly field?: string
}

const undefinedTable = '42P01'

/** A pool that connects and applies migrations on first use, and again after an error of either. */
export function createMigratedPool(options: MigratedPoolOptions): Pick<PostgresPool, 'use' | 'close'> {
  const { url, max, migrations, lockNumber, field } = options
  const pool = createPostgresPool(readPostgresUrl(url, field), max, { onBroken() {}, onOutage() {} })
  let prepared: Promise<void> | undefined

  const isPrepared = (preparing: Promise<void>) =>
    preparing.then(
      () => true,
      () => false,
    )

  return {
    async use<T>(run: (query: Query) => Promise<T>): Promise<T> {
      prepared ??= pool.use((query) => migrate(query, migrations, lockNumber))
      const preparing = prepared
      try {
        await preparing
        return await pool.use(run)
      } catch (error) {
        const isStale = sqlState(error) === undefinedTable || !(await isPrepared(preparing))
        if (isStale && prepared === preparing) prepared = undefined
        throw error
      }
    },
    close: pool.close,
  }
}
