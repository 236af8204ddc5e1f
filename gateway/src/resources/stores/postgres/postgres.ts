import { setTimeout as delay } from 'node:timers/promises'
import {
  createPostgresPool,
  type Query,
  readPostgresUrl,
  shortQueryTimeoutMs,
  sqlState,
} from '../../../database/postgres/client.ts'
import { migrate } from '../../../database/postgres/migrate.ts'
import type { Clock } from '../../../lib/clock.ts'
import { historyRows, historySql } from '../history-rows.ts'
import { postgresMigrations } from '../migrations.ts'
import { createRecordStore } from '../record-store.ts'
import type { DriverEvents, RowDriver } from '../row-driver.ts'
import type { ResourceStore } from '../store.ts'
import {
  createValueCodec,
  type EncryptionSettings,
  readEncryptionKeys,
  type SecretPaths,
} from '../value-codec.ts'
import { rewriteRows, writeChanges } from './commit.ts'
import { selectRows } from './read.ts'
import { listen, poll, type WatchSettings } from './watch.ts'

/** Throws if a key of `EncryptionSettings` is not valid. */
export type PostgresStoreOptions = EncryptionSettings & {
  /** `postgres://…`, with `sslmode` as in libpq. Throws if it is not valid. */
  url: string
  /** Maximum number of connections, including the listener; with a single one, changes are polled. */
  maxConnections?: number
  secretPaths: SecretPaths
  clock: Clock
  /** Called with the number of records re-encrypted with the current key. */
  onRotated?: (records: number) => void
  historyRows?: number | undefined
  /** Interval of polling for changes, in addition to notifications. */
  pollMs?: number
  /**
   * Called once if notifications do not arrive, as behind a connection pooler; changes then take up to
   * `pollMs`.
   */
  warn?: (message: string) => void
}

/** Store of resources in Postgres, which replicas may share. Connects on first use. */
export function createPostgresStore(options: PostgresStoreOptions): ResourceStore {
  const { url, secretPaths, clock } = options
  const config = readPostgresUrl(url)
  const codec = createValueCodec(readEncryptionKeys(options), secretPaths)
  const {
    maxConnections = 5,
    pollMs = 1000,
    warn = () => undefined,
    onRotated,
    historyRows: historyLimit,
  } = options
  return createRecordStore((events) => createDriver({ config, maxConnections, pollMs, warn }, events), {
    codec,
    clock,
    onRotated,
    historyRows: historyLimit,
  })
}

type DriverSettings = {
  config: ReturnType<typeof readPostgresUrl>
  maxConnections: number
  pollMs: number
  warn: (message: string) => void
}

/** Advisory lock of all writers and of migrations; an arbitrary number. */
const lockNumber = '7810205312473'

const undefinedTable = '42P01'

function createDriver(
  { config, maxConnections, pollMs, warn }: DriverSettings,
  events: DriverEvents,
): RowDriver {
  const closing = new AbortController()
  const hasListener = maxConnections > 1
  const pool = createPostgresPool(config, hasListener ? maxConnections - 1 : 1, {
    onBroken: events.replaced,
    onOutage: events.unavailable,
  })
  let prepared: Promise<void> | undefined
  let watching: Promise<unknown> | undefined

  /** Migrates the schema once, and again after a failure or if the tables are missing. */
  const prepare = async (): Promise<void> => {
    prepared ??= pool.use((query) => migrate(query, postgresMigrations, lockNumber))
    try {
      await prepared
    } catch (error) {
      prepared = undefined
      throw error
    }
  }

  const inTransaction = async <T>(run: (query: Query) => Promise<T>): Promise<T> => {
    await prepare()
    try {
      return await pool.use(async (query) => {
        const result = await run(query)
        await query('commit', undefined, shortQueryTimeoutMs)
        return result
      })
    } catch (error) {
      if (sqlState(error) === undefinedTable) prepared = undefined
      throw error
    }
  }

  return {
    async read(since, use) {
      const start = "begin isolation level repeatable read read only; set local statement_timeout = '10s'"
      return await inTransaction(async (query) => await use(await selectRows(query, start, since)))
    },

    async write(since, waitMs, use) {
      // A writer that disappears, or plans for too long, loses the lock.
      const start = `begin isolation level read committed read write; set local lock_timeout = ${Math.ceil(waitMs)};
        select pg_advisory_xact_lock(${lockNumber});
        set local statement_timeout = '10s'; set local idle_in_transaction_session_timeout = '60s'`
      return await inTransaction(async (query) => {
        const before = await selectRows(query, start, since)
        const changes = await use(before)
        return changes && (await writeChanges(query, before.generation, changes))
      })
    },

    async history(query) {
      await prepare()
      const { text, values } = historySql(query, (position) => `$${position}`)
      return historyRows(await pool.use((run) => run(text, values)), query)
    },

    async rewrite(rows) {
      await prepare()
      await pool.use((query) => rewriteRows(query, rows))
    },

    watch() {
      const settings: WatchSettings = { pool, pollMs, warn, events, closing: closing.signal }
      watching ??= Promise.all([poll(settings, prepare), hasListener ? listen(config, settings) : undefined])
    },

    async close() {
      closing.abort()
      // Connections to an unresponsive database are abandoned.
      const ended = Promise.all([watching, pool.close()])
      await Promise.race([ended, delay(1000, undefined, { ref: false })])
    },
  }
}
