import { assertSqlitePath, isPostgresUrl, sqlitePathOf } from '../../database/url.ts'
import type { Clock } from '../../lib/clock.ts'
import { createSqliteLedgerStore } from './sqlite/sqlite.ts'
import type { LedgerStore } from './store.ts'

export type LedgerDatabase = {
  /** SQLite or Postgres. */
  readonly url: string
  /** Configuration field of the URL, for errors. */
  readonly field: string
  /** Connections to Postgres. */
  readonly maxConnections: number
}

/** Creates the store of a database. Throws if the URL is not valid; connects on first use. */
export async function createLedgerStore(database: LedgerDatabase, clock: Clock): Promise<LedgerStore> {
  if (!isPostgresUrl(database.url)) {
    const path = sqlitePathOf(database.url)
    assertSqlitePath(path, database.field)
    return createSqliteLedgerStore(path, clock)
  }
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresLedgerStore } = await import('./postgres/postgres.ts')
  return createPostgresLedgerStore(database, clock)
}
