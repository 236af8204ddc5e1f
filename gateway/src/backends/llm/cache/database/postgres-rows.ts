import { type Query, shortQueryTimeoutMs } from '../../../../database/postgres/client.ts'
import { createMigratedPool } from '../../../../database/postgres/migrated-pool.ts'
import type { CachedRow } from '../../../../lib/planes/cached-rows.ts'
import {
  excessOf,
  mostBatches,
  mostDeleted,
  postgresMigrations,
  type RowLimits,
  type RowStore,
  type RowTotals,
  turnMs,
} from './row-store.ts'

/** Advisory lock of the migrations; an arbitrary number. */
const lockNumber = '7810205312481'
/** One reads, one writes, one deletes. */
const maxConnections = 3
const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** The response cache in Postgres; connects on first use. */
export function createPostgresRows(url: string, limits: RowLimits): RowStore {
  const { use, close } = createMigratedPool({
    url,
    max: maxConnections,
    migrations: postgresMigrations,
    lockNumber,
    field: 'config.responseCache.url',
  })
  return {
    read: (keys) =>
      use(async (query) => {
        const found = await query(
          `select key, content, ${now} - stored_at from tollgate_cached_responses
          where key = any($1::text[]) and expires_at > ${now}`,
          [keys],
          shortQueryTimeoutMs,
        )
        const rows = new Map(found.map((row) => [row[0], row]))
        return keys.map((key) => {
          const [, content, age] = rows.get(key) ?? []
          return content instanceof Uint8Array ? { content, ageMs: Math.max(0, Number(age)) } : undefined
        })
      }),
    write: (rows) => use((query) => write(query, rows)),
    prune: (hurries) =>
      use(async (query) => {
        const turn = await query(
          `update tollgate_cache_turns set taken_at = ${now}
          where id = 1 and (taken_at <= ${now} - ${turnMs} or $1::boolean) returning id`,
          [hurries],
        )
        if (turn.length > 0) {
          await deleteExpired(query)
          const { entries, bytes } = await deleteExcess(query, limits)
          await query('update tollgate_cache_turns set entries = $1, bytes = $2', [entries, bytes])
        }
        const [row] = await query('select entries, bytes from tollgate_cache_turns')
        return { entries: Number(row?.[0] ?? 0), bytes: Number(row?.[1] ?? 0) }
      }),
    close,
  }
}

/** In the order of the keys, so that no two processes wait for each other. */
async function write(query: Query, rows: readonly CachedRow[]): Promise<void> {
  const machineNow = Date.now()
  const ordered = rows.toSorted((one, other) => (one.key < other.key ? -1 : 1))
  await query(
    `insert into tollgate_cached_responses as stored (key, content, size, stored_at, expires_at)
    select key, content, octet_length(content), ${now} - age, ${now} - age + ttl
    from unnest($1::text[], $2::bytea[], $3::bigint[], $4::bigint[]) as given (key, content, age, ttl)
    on conflict (key) do update set content = excluded.content, size = excluded.size,
      stored_at = excluded.stored_at, expires_at = excluded.expires_at
    where stored.stored_at <= excluded.stored_at`,
    [
      ordered.map(({ key }) => key),
      ordered.map(({ content }) => Buffer.from(content.buffer, content.byteOffset, content.byteLength)),
      ordered.map(({ storedAt }) => Math.max(0, machineNow - storedAt)),
      ordered.map(({ ttlMs }) => ttlMs),
    ],
  )
}

async function deleteExpired(query: Query): Promise<void> {
  for (let batch = 0; batch < mostBatches; batch += 1) {
    const deleted = await query(
      `delete from tollgate_cached_responses where key in (
        select key from tollgate_cached_responses where expires_at <= ${now}
        order by expires_at limit ${mostDeleted} for update skip locked) returning key`,
    )
    if (deleted.length < mostDeleted) return
  }
}

async function deleteExcess(query: Query, limits: RowLimits): Promise<RowTotals> {
  for (let batch = 0; ; batch += 1) {
    const [row] = await query('select count(*), coalesce(sum(size), 0) from tollgate_cached_responses')
    const totals = { entries: Number(row?.[0]), bytes: Number(row?.[1]) }
    const isWithin = totals.entries <= limits.maxEntries && totals.bytes <= limits.maxBytes
    if (isWithin || batch === mostBatches) return totals
    const oldest = await query(
      `select key, size from tollgate_cached_responses order by stored_at, key limit ${mostDeleted}`,
    )
    const keys = excessOf(
      oldest.map(([key, size]) => ({ key: String(key), size: Number(size) })),
      totals,
      limits,
    )
    await query('delete from tollgate_cached_responses where key = any($1::text[])', [keys])
  }
}
