import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import { type ResourceStore, StoreUnavailable } from '../store.ts'
import { type Migrations, postgresMigrations, tooNew } from './migrations.ts'
import {
  connectListener,
  createPostgresPool,
  type PostgresListener,
  type PostgresPool,
  type Query,
  readPostgresUrl,
  sqlState,
} from './postgres-client.ts'
import { createRecordStore } from './record-store.ts'
import {
  type CommittedRows,
  type DriverEvents,
  keptRemovals,
  pageRows,
  type RowChanges,
  type RowDelta,
  type RowDriver,
  type RowKey,
  type StoredRow,
} from './row-driver.ts'
import { createValueCodec, readEncryptionKey, type SecretPaths } from './value-codec.ts'

export type PostgresStoreOptions = {
  /** `postgres://…`, with `sslmode` as Postgres' own clients understand it. Throws when it cannot be understood. */
  url: string
  /** All connections, the one that listens included; with a single one nothing listens and changes are polled. */
  maxConnections?: number
  /** 32 bytes as 64 hex digits or base64; throws when it is something else. */
  encryptionKey?: string | undefined
  secretPaths: SecretPaths
  clock: Clock
  /** How often the database is asked whether there is something new, notified or not. */
  pollMs?: number
  /** Told once when notifications do not arrive, as behind a pooler, so that changes take up to `pollMs`. */
  warn?: (message: string) => void
}

/** Resources in Postgres, which any number of replicas may share. Connects when it is first used. */
export function createPostgresStore(options: PostgresStoreOptions): ResourceStore {
  const { url, encryptionKey, secretPaths, clock } = options
  const config = readPostgresUrl(url)
  const codec = createValueCodec(readEncryptionKey(encryptionKey), secretPaths)
  const { maxConnections = 5, pollMs = 1000, warn = () => undefined } = options
  return createRecordStore((events) => createDriver({ config, maxConnections, pollMs, warn }, events), {
    codec,
    clock,
  })
}

type DriverSettings = {
  config: ReturnType<typeof readPostgresUrl>
  maxConnections: number
  pollMs: number
  warn: (message: string) => void
}

/** One lock for all writers and for changes of the schema; any number that nobody else is likely to use. */
const lockNumber = '7810205312473'
const channel = 'tollgate_resources'
const undefinedTable = '42P01'
const columns = 'select kind, id, value, revision, created_at, updated_at from tollgate_resources'

function createDriver(
  { config, maxConnections, pollMs, warn }: DriverSettings,
  events: DriverEvents,
): RowDriver {
  const closing = new AbortController()
  const hasListener = maxConnections > 1
  const pool = createPostgresPool(config, hasListener ? maxConnections - 1 : 1, events.replaced)
  let prepared: Promise<void> | undefined
  let watching: Promise<unknown> | undefined

  /** The schema is looked after once, and again when that failed or the tables are gone. */
  const prepare = async (): Promise<void> => {
    prepared ??= pool.use((query) => migrate(query, postgresMigrations))
    try {
      await prepared
    } catch (error) {
      prepared = undefined
      throw error
    }
  }

  const inTransaction = async <T>(start: string, run: (query: Query) => Promise<T>): Promise<T> => {
    await prepare()
    try {
      return await pool.use(async (query) => {
        await query(start)
        const result = await run(query)
        await query('commit')
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
      return await inTransaction(start, async (query) => await use(await select(query, since)))
    },

    async write(since, waitMs, use) {
      const start = `begin isolation level read committed read write; set local lock_timeout = ${Math.ceil(waitMs)}`
      return await inTransaction(start, async (query) => {
        await query(`select pg_advisory_xact_lock(${lockNumber})`)
        // A writer that has vanished without a word, or plans for too long, loses the lock.
        await query(
          "set local statement_timeout = '10s'; set local idle_in_transaction_session_timeout = '60s'",
        )
        const changes = await use(await select(query, since))
        return changes && (await apply(query, changes))
      })
    },

    watch() {
      const settings: WatchSettings = { pool, pollMs, warn, events, closing: closing.signal }
      watching ??= Promise.all([poll(settings, prepare), hasListener ? listen(config, settings) : undefined])
    },

    async close() {
      closing.abort()
      // A connection to a database that does not answer is not waited for.
      const ended = Promise.all([watching, pool.close()])
      await Promise.race([ended, delay(1000, undefined, { ref: false })])
    },
  }
}

async function migrate(query: Query, migrations: Migrations): Promise<void> {
  const version = await schemaVersion(query)
  const refusal = tooNew(version, migrations)
  if (refusal !== undefined)
    throw new StoreUnavailable(`the Postgres database cannot be used: ${refusal}`, undefined)
  if (version === migrations.length) return
  await query("begin isolation level read committed read write; set local lock_timeout = '10s'")
  await query(`select pg_advisory_xact_lock(${lockNumber})`)
  await query(
    'create table if not exists tollgate_migrations (version integer primary key, applied_at text not null)',
  )
  const from = await schemaVersion(query)
  for (const [index, sql] of migrations.entries()) {
    if (index < from) continue
    await query(sql)
    await query('insert into tollgate_migrations (version, applied_at) values ($1, $2)', [
      index + 1,
      new Date().toISOString(),
    ])
  }
  await query('commit')
}

async function schemaVersion(query: Query): Promise<number> {
  const [found] = await query("select to_regclass('tollgate_migrations') is not null")
  if (found?.[0] !== true) return 0
  const [row] = await query('select max(version) from tollgate_migrations')
  return Number(row?.[0] ?? 0)
}

async function select(query: Query, since: number | undefined): Promise<RowDelta> {
  const [state] = await query('select generation, deltas_since from tollgate_state')
  if (state === undefined)
    throw new StoreUnavailable('the Postgres database cannot be used: tollgate_state is empty', undefined)
  const generation = Number(state[0])
  if (since === undefined || since > generation || since < Number(state[1])) {
    await query(`declare found no scroll cursor for ${columns}`)
    return { generation, complete: true, removed: [], pages: pages(query) }
  }
  // A delta is small, which statistics from before a large change do not know: the index takes 1 ms where a scan of
  // 100,000 rows takes 10 to 50.
  await query('set local enable_seqscan = off')
  const removed = await query('select kind, id from tollgate_removals where generation > $1', [since])
  await query(`declare found no scroll cursor for ${columns} where generation > $1`, [since])
  return { generation, complete: false, removed: removed.map(toKey), pages: pages(query) }
}

function toKey([kind, id]: readonly unknown[]): RowKey {
  return [String(kind), String(id)]
}

async function* pages(query: Query): AsyncGenerator<readonly StoredRow[]> {
  for (;;) {
    const rows = await query(`fetch ${pageRows} from found`)
    yield rows.map(toRow)
    if (rows.length < pageRows) break
  }
  await query('close found')
}

function toRow([kind, id, text, revision, createdAt, updatedAt]: readonly unknown[]): StoredRow {
  return [String(kind), String(id), String(text), Number(revision), String(createdAt), String(updatedAt)]
}

async function apply(query: Query, { puts, removes, at }: RowChanges): Promise<CommittedRows> {
  const [state] = await query('select generation + 1 from tollgate_state')
  const generation = Number(state?.[0])
  const [kinds, ids] = [puts.map(([kind]) => kind), puts.map(([, id]) => id)]
  const written = new Map<string, { revision: number; createdAt: string }>()
  if (puts.length > 0) {
    const rows = await query(
      `insert into tollgate_resources as stored (kind, id, value, revision, created_at, updated_at, generation)
        select kind, id, value, 1, $4, $4, $5
        from unnest($1::text[], $2::text[], $3::text[]) as given (kind, id, value)
        on conflict (kind, id) do update set value = excluded.value, revision = stored.revision + 1,
          updated_at = excluded.updated_at, generation = excluded.generation
        returning kind, id, revision, created_at`,
      [kinds, ids, puts.map(([, , text]) => text), at, generation],
    )
    for (const [kind, id, revision, createdAt] of rows) {
      written.set(JSON.stringify([kind, id]), { revision: Number(revision), createdAt: String(createdAt) })
    }
    await query(
      `delete from tollgate_removals where (kind, id) in (select * from unnest($1::text[], $2::text[]))`,
      [kinds, ids],
    )
  }
  const removed = await remove(query, removes, generation)
  if (puts.length === 0 && removed.length === 0) {
    return { generation: generation - 1, puts: [], removed: [] }
  }
  await query('update tollgate_state set generation = $1', [generation])
  await query('select pg_notify($1, $2)', [channel, String(generation)])
  const ofPut = puts.map(
    ([kind, id]) => written.get(JSON.stringify([kind, id])) ?? { revision: 1, createdAt: at },
  )
  return { generation, puts: ofPut, removed }
}

async function remove(query: Query, keys: readonly RowKey[], generation: number): Promise<readonly RowKey[]> {
  if (keys.length === 0) return []
  const rows = await query(
    `with gone as (
        delete from tollgate_resources where (kind, id) in (select * from unnest($1::text[], $2::text[]))
        returning kind, id
      )
      insert into tollgate_removals (kind, id, generation) select kind, id, $3 from gone returning kind, id`,
    [keys.map(([kind]) => kind), keys.map(([, id]) => id), generation],
  )
  const [oldest] = await query(
    'select generation from tollgate_removals order by generation desc limit 1 offset $1',
    [keptRemovals],
  )
  if (oldest !== undefined) {
    await query('delete from tollgate_removals where generation <= $1', [oldest[0]])
    await query('update tollgate_state set deltas_since = $1', [oldest[0]])
  }
  return rows.map(toKey)
}

type WatchSettings = {
  pool: PostgresPool
  pollMs: number
  warn: (message: string) => void
  events: DriverEvents
  closing: AbortSignal
}

/** Finds what notifications have missed, and notices that the database is gone or back. */
async function poll(
  { pool, pollMs, events, closing }: WatchSettings,
  prepare: () => Promise<void>,
): Promise<void> {
  while (!closing.aborted) {
    // Connections that are all at work prove more than a poll, which would have to wait for them.
    if (!pool.isBusy()) {
      try {
        await prepare()
        await pool.use((query) => announce(query, events))
      } catch (error) {
        if (!closing.aborted) events.lost(error instanceof Error ? error : new Error(String(error)))
      }
    }
    await pause(pollMs, closing)
  }
}

const firstRetryMs = 100
const longestRetryMs = 10_000
/** A pooler in between is seldom taken away. */
const silentRetryMs = 60_000
/** How often the connection that listens is tried with a notification of our own. */
const trialMs = 30_000
const trialWaitMs = 2000
const busyMs = 100

/** Keeps one connection listening, for as long as the store is open. */
async function listen(config: DriverSettings['config'], settings: WatchSettings): Promise<void> {
  const { closing, warn } = settings
  let retryMs = firstRetryMs
  let hasWarned = false
  while (!closing.aborted) {
    const end = await listenOnce(config, settings)
    if (closing.aborted) return
    if (end === 'lost') retryMs = firstRetryMs
    if (end === 'silent') {
      if (!hasWarned) warn(silence)
      hasWarned = true
      await pause(silentRetryMs, closing)
      continue
    }
    // Not all replicas at the same time when the database comes back.
    await pause(retryMs * (0.5 + Math.random()), closing)
    retryMs = Math.min(longestRetryMs, retryMs * 2)
  }
}

const silence =
  'Postgres delivers no notifications on this connection (is a connection pooler in between?): changes are polled'

/**
 * How a connection that listened came to its end: it could not be made, it worked and was lost, or nothing is heard on it. A
 * connection pooler takes part in LISTEN without ever delivering anything, so the connection is tried.
 */
async function listenOnce(
  config: DriverSettings['config'],
  { pool, events, closing }: WatchSettings,
): Promise<'unreachable' | 'lost' | 'silent'> {
  const ownTrial = `trial ${randomUUID()}`
  let heard = Promise.withResolvers<'heard'>()
  let listener: PostgresListener | undefined
  let hasHeard = false
  try {
    listener = await connectListener(config, (payload) => {
      if (payload === ownTrial) heard.resolve('heard')
      if (/^[0-9]{1,15}$/.test(payload)) events.at(Number(payload))
    })
    const ended = Promise.race([listener.ended, aborted(closing)]).then(() => 'ended' as const)
    await listener.query(`listen ${channel}`)
    for (;;) {
      // Waiting for a connection that somebody else is using says nothing about notifications.
      while (pool.isBusy() && !closing.aborted) await pause(busyMs, closing)
      await pool.use((query) => query('select pg_notify($1, $2)', [channel, ownTrial]))
      const outcome = await Promise.race([heard.promise, ended, pause(trialWaitMs, closing)])
      if (outcome === undefined && !hasHeard) return 'silent'
      if (outcome !== 'heard') break
      // What was committed before this connection listened has been announced to nobody here.
      if (!hasHeard) await announce(listener.query, events)
      hasHeard = true
      heard = Promise.withResolvers<'heard'>()
      if ((await Promise.race([ended, pause(trialMs, closing)])) === 'ended') break
    }
  } catch {
    // The poll meets the same and reports it.
  } finally {
    await listener?.close()
  }
  if (!hasHeard) return 'unreachable'
  events.replaced()
  return 'lost'
}

async function announce(query: Query, events: DriverEvents): Promise<void> {
  const [state] = await query('select generation from tollgate_state')
  events.at(Number(state?.[0]))
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Ends early, without an error, when the store is closed. */
async function pause(ms: number, closing: AbortSignal): Promise<undefined> {
  await delay(ms, undefined, { signal: closing }).catch(() => undefined)
  return undefined
}
