import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../../lib/clock.ts'
import { asError } from '../../../lib/thrown.ts'
import { type Migrations, postgresMigrations, tooNew } from '../migrations.ts'
import { createRecordStore } from '../record-store.ts'
import {
  type CommittedRows,
  type DriverEvents,
  maxStoredRemovals,
  pageRows,
  type RowChanges,
  type RowDelta,
  type RowDriver,
  type RowKey,
  type StoredRow,
} from '../row-driver.ts'
import { type ResourceStore, StoreUnavailable } from '../store.ts'
import {
  createValueCodec,
  type EncryptionSettings,
  readEncryptionKeys,
  type SecretPaths,
} from '../value-codec.ts'
import {
  connectListener,
  createPostgresPool,
  type PostgresListener,
  type PostgresPool,
  type Query,
  readPostgresUrl,
  shortQueryTimeoutMs,
  sqlState,
} from './client.ts'

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
  const { maxConnections = 5, pollMs = 1000, warn = () => undefined, onRotated } = options
  return createRecordStore((events) => createDriver({ config, maxConnections, pollMs, warn }, events), {
    codec,
    clock,
    onRotated,
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
const channel = 'tollgate_resources'
const undefinedTable = '42P01'
const columns = 'select kind, id, value, revision, created_at, updated_at from tollgate_resources'

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
    prepared ??= pool.use((query) => migrate(query, postgresMigrations))
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
      return await inTransaction(async (query) => await use(await select(query, start, since)))
    },

    async write(since, waitMs, use) {
      // A writer that disappears, or plans for too long, loses the lock.
      const start = `begin isolation level read committed read write; set local lock_timeout = ${Math.ceil(waitMs)};
        select pg_advisory_xact_lock(${lockNumber});
        set local statement_timeout = '10s'; set local idle_in_transaction_session_timeout = '60s'`
      return await inTransaction(async (query) => {
        const before = await select(query, start, since)
        const changes = await use(before)
        return changes && (await apply(query, before.generation, changes))
      })
    },

    async rewrite(rows) {
      await prepare()
      const columnsOf = (column: 0 | 1 | 2 | 3) => rows.map((row) => row[column])
      await pool.use((query) => query(rewriteRows, [columnsOf(0), columnsOf(1), columnsOf(2), columnsOf(3)]))
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

/** Begins a transaction and reads state, removals and the first page in one round trip. */
async function select(query: Query, start: string, since: number | undefined): Promise<RowDelta> {
  const known = Number.isSafeInteger(since) ? since : undefined
  const state = 'select generation, deltas_since from tollgate_state'
  const texts = known === undefined ? [state, ...declareAll] : [state, ...declareSince(known)]
  const answers = await query.all([start, ...texts].join('; '))
  const [found, ...lists] = answers.slice(-texts.length)
  const [generation, deltasSince] = (found?.[0] ?? []).map(Number)
  if (generation === undefined || deltasSince === undefined)
    throw new StoreUnavailable('the Postgres database cannot be used: tollgate_state is empty', undefined)
  const first = lists.at(-1) ?? []
  if (known === undefined) return { generation, complete: true, removed: [], pages: pages(query, first) }
  if (known <= generation && known >= deltasSince) {
    const removed = (lists.at(-3) ?? []).map(toKey)
    return { generation, complete: false, removed, pages: pages(query, first) }
  }
  const all = await query.all(['close found', 'set local enable_seqscan = on', ...declareAll].join('; '))
  return { generation, complete: true, removed: [], pages: pages(query, all.at(-1) ?? []) }
}

const nextPage = `fetch ${pageRows} from found`
const declareAll = [
  'set local enable_seqscan = on',
  `declare found no scroll cursor for ${columns}`,
  nextPage,
]

// A delta is small, but statistics from before a large change do not reflect that: the index takes 1 ms, a
// scan of 100,000 rows 10 to 50 ms. Plans without sequential scans have such costs that the server would
// spend 0.5 s on JIT compilation.
function declareSince(generation: number): string[] {
  return [
    'set local enable_seqscan = off',
    'set local jit = off',
    `select kind, id from tollgate_removals where generation > ${generation}`,
    `declare found no scroll cursor for ${columns} where generation > ${generation}`,
    nextPage,
  ]
}

function toKey([kind, id]: readonly unknown[]): RowKey {
  return [String(kind), String(id)]
}

async function* pages(
  query: Query,
  first: readonly (readonly unknown[])[],
): AsyncGenerator<readonly StoredRow[]> {
  for (let rows = first; ; rows = await query(nextPage)) {
    yield rows.map(toRow)
    if (rows.length < pageRows) break
  }
}

function toRow([kind, id, text, revision, createdAt, updatedAt]: readonly unknown[]): StoredRow {
  return [String(kind), String(id), String(text), Number(revision), String(createdAt), String(updatedAt)]
}

/**
 * Commits in one statement: a further round trip would block all writers for longer. Parts of a statement see
 * the tables before the statement; changes of one part reach another through returned rows.
 */
const applyChanges = `
  with given as (select * from unnest($1::text[], $2::text[], $3::text[]) as given (kind, id, value)),
    unwanted as (select * from unnest($4::text[], $5::text[]) as unwanted (kind, id)),
    gone as (
      delete from tollgate_resources stored using unwanted
      where stored.kind = unwanted.kind and stored.id = unwanted.id
      returning stored.kind, stored.id, stored.revision
    ),
    oldest as (
      select generation from tollgate_removals where exists (select from gone)
      order by generation desc limit 1 offset greatest(0, ${maxStoredRemovals} - (select count(*) from gone))
    ),
    pruned as (
      delete from tollgate_removals removal using oldest where removal.generation <= oldest.generation
      returning removal.revision
    ),
    state as (
      update tollgate_state set generation = generation + 1,
        deltas_since = coalesce((select generation from oldest), deltas_since),
        revision_floor = greatest(revision_floor, (select max(revision) from pruned))
      where exists (select from given) or exists (select from gone)
      returning generation, revision_floor
    ),
    back as (
      delete from tollgate_removals removal using given
      where removal.kind = given.kind and removal.id = given.id
      returning removal.kind, removal.id, removal.revision
    ),
    put as (
      insert into tollgate_resources as stored (kind, id, value, revision, created_at, updated_at, generation)
      select given.kind, given.id, given.value, 1 + greatest(revision_floor, back.revision), $6, $6, generation
      from given cross join state left join back on back.kind = given.kind and back.id = given.id
      on conflict (kind, id) do update set value = excluded.value, revision = stored.revision + 1,
        updated_at = excluded.updated_at, generation = excluded.generation
      returning kind, id, revision, created_at
    ),
    noted as (
      insert into tollgate_removals (kind, id, generation, revision)
      select gone.kind, gone.id, state.generation, gone.revision from gone cross join state
    )
  select 'state', pg_notify('${channel}', generation::text)::text, null, generation, null from state
  union all select 'put', kind, id, revision, created_at from put
  union all select 'gone', kind, id, null, null from gone`

async function apply(
  query: Query,
  before: number,
  { puts, removes, at }: RowChanges,
): Promise<CommittedRows> {
  const columnsOf = (rows: readonly (readonly string[])[], count: number) =>
    Array.from({ length: count }, (_, column) => rows.map((row) => row[column]))
  // Plus 2 s per million characters, for a busy server.
  const timeoutMs = shortQueryTimeoutMs + puts.reduce((sum, [, , text]) => sum + text.length, 0) / 500
  const values = [...columnsOf(puts, 3), ...columnsOf(removes, 2), at]
  const rows = await query(applyChanges, values, timeoutMs)
  const written = new Map<string, { revision: number; createdAt: string }>()
  const removed: RowKey[] = []
  let generation = before
  for (const [part, kind, id, number, createdAt] of rows) {
    if (part === 'state') generation = Number(number)
    if (part === 'gone') removed.push(toKey([kind, id]))
    if (part !== 'put') continue
    written.set(JSON.stringify([kind, id]), { revision: Number(number), createdAt: String(createdAt) })
  }
  const ofPut = puts.map(
    ([kind, id]) => written.get(JSON.stringify([kind, id])) ?? { revision: 1, createdAt: at },
  )
  return { generation, puts: ofPut, removed }
}

const rewriteRows = `
  update tollgate_resources stored set value = given.value
  from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as given (kind, id, value, revision)
  where stored.kind = given.kind and stored.id = given.id and stored.revision = given.revision`

type WatchSettings = {
  pool: PostgresPool
  pollMs: number
  warn: (message: string) => void
  events: DriverEvents
  closing: AbortSignal
}

/** Detects changes without a notification, and the start and end of an outage. */
async function poll(
  { pool, pollMs, events, closing }: WatchSettings,
  prepare: () => Promise<void>,
): Promise<void> {
  while (!closing.aborted) {
    // If all connections are in use, the database responds, and a poll would have to wait.
    if (!pool.isBusy()) {
      try {
        await prepare()
        await pool.use((query) => announce(query, events))
      } catch (error) {
        if (!closing.aborted) events.unavailable(asError(error))
      }
    }
    await pause(pollMs, closing)
  }
}

const firstRetryMs = 100
const longestRetryMs = 10_000
/** Behind a pooler, notifications rarely start to work. */
const silentRetryMs = 60_000
/** Interval of test notifications on the listening connection. */
const trialMs = 30_000
const trialWaitMs = 2000
const busyMs = 100

/** Listens for notifications on one connection until the store is closed. */
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
    // Random, so that replicas do not reconnect simultaneously after an outage.
    await pause(retryMs * (0.5 + Math.random()), closing)
    retryMs = Math.min(longestRetryMs, retryMs * 2)
  }
}

const silence =
  'Postgres delivers no notifications on this connection (is a connection pooler in between?): changes are polled'

/**
 * Listens on one connection until its end: it failed, it was lost, or it delivers no notifications.
 * Connection poolers accept LISTEN without delivering notifications, so the connection is tested.
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
      if (/^[0-9]{1,15}$/.test(payload)) events.generation(Number(payload))
    })
    const ended = Promise.race([listener.ended, aborted(closing)]).then(() => 'ended' as const)
    await listener.query(`listen ${channel}`)
    for (;;) {
      // Waiting for a connection in use must not count as a missing notification.
      while (pool.isBusy() && !closing.aborted) await pause(busyMs, closing)
      await pool.use((query) => query('select pg_notify($1, $2)', [channel, ownTrial]))
      const outcome = await Promise.race([heard.promise, ended, pause(trialWaitMs, closing)])
      if (outcome === undefined && !hasHeard) return 'silent'
      if (outcome !== 'heard') break
      // Commits before the connection listened were not announced.
      if (!hasHeard) await announce(listener.query, events)
      hasHeard = true
      heard = Promise.withResolvers<'heard'>()
      if ((await Promise.race([ended, pause(trialMs, closing)])) === 'ended') break
    }
  } catch {
    // The poll fails as well and reports the error.
  } finally {
    await listener?.close()
  }
  if (!hasHeard) return 'unreachable'
  events.replaced()
  return 'lost'
}

async function announce(query: Query, events: DriverEvents): Promise<void> {
  const [state] = await query('select generation from tollgate_state', undefined, shortQueryTimeoutMs)
  events.generation(Number(state?.[0]))
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Ends early, without an error, if the store is closed. */
async function pause(ms: number, closing: AbortSignal): Promise<undefined> {
  await delay(ms, undefined, { signal: closing }).catch(() => undefined)
  return undefined
}
