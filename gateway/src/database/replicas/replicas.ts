import { createPostgresPool, type Query, readPostgresUrl } from '../postgres/client.ts'
import { migrate } from '../postgres/migrate.ts'

/** A process that shares the database. Times are milliseconds since the epoch. */
export type Replica = { readonly id: string; readonly startedAt: number; readonly lastSeen: number }

/** Signs of life of the processes with a Postgres database. */
export type ReplicaRegistry = {
  /** Processes of the last minutes; empty while the database does not respond. Waits a second at most. */
  read(): Promise<readonly Replica[]>
  /** Removes the row of this process, unless the database does not respond. */
  close(): Promise<void>
}

export type ReplicaOptions = {
  readonly url: string
  readonly id: string
  readonly startedAt: number
  /** Reports the first failure, and the first success after one. */
  onChange(error: unknown): void
  /** Milliseconds since the epoch. */
  now(): number
  readonly signMs?: number
}

/**
 * Longer than idle connections of the pool live: a process has a connection for a moment, not all the time.
 */
const defaultSignMs = 60_000
const longestWaitMs = 1_000
/** Age from which a read asks again. */
const freshMs = 5_000
/** Advisory lock of the migrations; an arbitrary number. */
const lockNumber = '7810205312479'
const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
const maxReplicas = 1_000

const migrations = {
  table: 'tollgate_replica_migrations',
  steps: [
    `create table tollgate_replicas (
      id text collate "C" primary key,
      started_at bigint not null,
      seen_at bigint not null
    );`,
  ],
}

/** Starts the signs of this process. */
export function createReplicaRegistry(options: ReplicaOptions): ReplicaRegistry {
  const { url, id, startedAt, onChange, now: clock, signMs = defaultSignMs } = options
  const pool = createPostgresPool(readPostgresUrl(url), 1, { onBroken() {}, onOutage() {} })
  let replicas: readonly Replica[] = []
  let hasFailed = false
  let isClosed = false
  let signing: { readonly at: number; readonly done: Promise<void> }

  async function sign(): Promise<void> {
    if (isClosed) return
    try {
      replicas = await pool.use((query) => exchange(query, { id, startedAt, aliveMs: 2.5 * signMs }))
      if (hasFailed) onChange(undefined)
      hasFailed = false
    } catch (error) {
      replicas = []
      if (!hasFailed && !isClosed) onChange(error)
      hasFailed = true
    }
  }

  function start(): void {
    signing = { at: clock(), done: sign() }
  }

  const timer = setInterval(start, signMs)
  timer.unref()
  signing = { at: clock(), done: sign() }

  return {
    async read() {
      if (clock() - signing.at > freshMs) start()
      await withinTime(signing.done)
      return replicas
    },
    async close() {
      isClosed = true
      clearInterval(timer)
      await withinTime(
        signing.done.then(() => (hasFailed ? undefined : pool.use((query) => leave(query, id)))),
      )
      await withinTime(pool.close())
    },
  }
}

type Sign = { readonly id: string; readonly startedAt: number; readonly aliveMs: number }

async function exchange(query: Query, { id, startedAt, aliveMs }: Sign): Promise<Replica[]> {
  await migrate(query, migrations, lockNumber)
  await query(
    `insert into tollgate_replicas (id, started_at, seen_at) values ($1, $2, ${now})
    on conflict (id) do update set started_at = excluded.started_at, seen_at = excluded.seen_at`,
    [id, startedAt],
  )
  await query(`delete from tollgate_replicas where seen_at < ${now} - 86400000`)
  const rows = await query(
    `select id, started_at, seen_at from tollgate_replicas where seen_at >= ${now} - $1::bigint
    order by started_at, id limit ${maxReplicas}`,
    [Math.round(aliveMs)],
  )
  return rows.map(([one, started, seen]) => ({
    id: String(one),
    startedAt: Number(started),
    lastSeen: Number(seen),
  }))
}

async function leave(query: Query, id: string): Promise<void> {
  await query('delete from tollgate_replicas where id = $1', [id])
}

/** Waits for work up to a time limit; its errors are reported elsewhere. */
async function withinTime(work: Promise<unknown>): Promise<void> {
  const expired = Promise.withResolvers<void>()
  const timer = setTimeout(expired.resolve, longestWaitMs)
  try {
    await Promise.race([work.catch(() => undefined), expired.promise])
  } finally {
    clearTimeout(timer)
  }
}
