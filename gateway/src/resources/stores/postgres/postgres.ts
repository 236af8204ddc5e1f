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

/** Throws where a key of `EncryptionSettings` is none. */
export type PostgresStoreOptions = EncryptionSettings & {
  /** `postgres://…`, with `sslmode` as Postgres' own clients understand it. Throws when it cannot be understood. */
  url: string
  /** All connections, the one that listens included; with a single one nothing listens and changes are polled. */
  maxConnections?: number
  secretPaths: SecretPaths
  clock: Clock
  /** Called with the number of records when those of previous keys are encrypted with the current one. */
  onRotated?: (records: number) => void
  /** How often the database is asked whether there is something new, notified or not. */
  pollMs?: number
  /** Told once when notifications do not arrive, as behind a pooler, so that changes take up to `pollMs`. */
  warn?: (message: string) => void
}

/** Resources in Postgres, which any number of replicas may share. Connects when it is first used. */
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
  const pool = createPostgresPool(config, hasListener ? maxConnections - 1 : 1, {
    onBroken: events.replaced,
    onOutage: events.unavailable,
  })
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
      // A writer that has vanished without a word, or plans for too long, loses the lock.
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

/** Begins a transaction and reads the state, the removals and the first page in one round trip. */
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

// A delta is small, which statistics from before a large change do not know: the index takes 1 ms where a scan of 100,000
// rows takes 10 to 50. Plans without sequential scans have such costs that the server would compile them for 0.5 s.
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
 * Commits in one statement: every further round trip would extend the time for which all writers wait. Parts of a statement
 * see the tables as they were before it, so what one part changes reaches another through its returned rows.
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
  // 2 s more for each million characters, which a busy server needs.
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
        if (!closing.aborted) events.unavailable(asError(error))
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
      if (/^[0-9]{1,15}$/.test(payload)) events.generation(Number(payload))
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
  const [state] = await query('select generation from tollgate_state', undefined, shortQueryTimeoutMs)
  events.generation(Number(state?.[0]))
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
