import { type Query, shortQueryTimeoutMs } from '../../../database/postgres/client.ts'
import { createMigratedPool } from '../../../database/postgres/migrated-pool.ts'
import type { LeaseReply, LeaseReport } from '../../../lib/planes/lease-exchange.ts'
import {
  type LeaseStore,
  leasesText,
  mostPruned,
  postgresMigrations,
  processMs,
  readBucket,
} from './lease-store.ts'
import { fullAt, settle } from './settle.ts'

/** Advisory lock of the migrations; an arbitrary number. */
const lockNumber = '7810205312475'
const begin = `begin isolation level read committed read write;
  set local lock_timeout = '2s'; set local statement_timeout = '4s'; set local idle_in_transaction_session_timeout = '10s'`
const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Shared limits in Postgres, on one connection; connects on first use. */
export function createPostgresLeases(url: string): LeaseStore {
  const { use, close } = createMigratedPool({ url, max: 1, migrations: postgresMigrations, lockNumber })
  return {
    exchange: (process, reports) =>
      use(async (query) => {
        if (reports.length === 0) return { replies: [], processes: await countProcesses(query) }
        await query.all(begin)
        const replies = await exchange(query, process, reports)
        const processes = await countProcesses(query)
        await query('commit', undefined, shortQueryTimeoutMs)
        return { replies, processes }
      }),
    announce: (process) =>
      use(async (query) => {
        await query(
          `insert into tollgate_limit_processes (id, seen_at) values ($1, ${now})
          on conflict (id) do update set seen_at = excluded.seen_at`,
          [process],
        )
      }),
    prune: () =>
      use(async (query) => {
        await query(`delete from tollgate_limit_processes where seen_at < ${now} - 10 * ${processMs}`)
        await query(`delete from tollgate_limit_buckets where (limit_id, key) in (
          select limit_id, key from tollgate_limit_buckets where full_at < ${now}
          order by limit_id, key limit ${mostPruned} for update skip locked)`)
      }),
    leave: (process) =>
      use(async (query) => {
        await query('delete from tollgate_limit_processes where id = $1', [process])
      }),
    close,
  }
}

/** Rows are created and locked in the order of their keys, so that no two processes wait for each other. */
async function exchange(
  query: Query,
  process: string,
  reports: readonly LeaseReport[],
): Promise<LeaseReply[]> {
  const limits = reports.map(({ limit }) => limit)
  const keys = reports.map(({ key }) => key)
  await query(
    `insert into tollgate_limit_buckets (limit_id, key, used, refilled_at, full_at, leases)
    select limit_id, key, 0, ${now}, 0, '{}' from unnest($1::text[], $2::text[]) as given (limit_id, key)
    order by limit_id collate "C", key collate "C" on conflict do nothing`,
    [limits, keys],
  )
  const found = await query(
    `select used, refilled_at, leases, limit_id, key, ${now} from tollgate_limit_buckets
    where (limit_id, key) in (select * from unnest($1::text[], $2::text[]))
    order by limit_id, key for update`,
    [limits, keys],
  )
  const rows = new Map(found.map((row) => [`${row[3]} ${row[4]}`, row]))
  const settled = reports.map((report) => {
    const row = rows.get(`${report.limit} ${report.key}`)
    return settle(row && readBucket(row), report, process, Number(row?.[5] ?? 0))
  })
  const columns = [
    limits,
    keys,
    settled.map(({ bucket }) => bucket.used),
    settled.map(({ bucket }) => bucket.refilledAt),
    settled.map(({ bucket }, index) => fullAtOf(bucket, reports[index])),
    settled.map(({ bucket }) => leasesText(bucket)),
  ]
  await query(
    `update tollgate_limit_buckets stored set used = given.used, refilled_at = given.refilled_at,
      full_at = given.full_at, leases = given.leases
    from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
      as given (limit_id, key, used, refilled_at, full_at, leases)
    where stored.limit_id = given.limit_id and stored.key = given.key`,
    columns,
  )
  return settled.map(({ reply }) => reply)
}

function fullAtOf(bucket: Parameters<typeof fullAt>[0], report: LeaseReport | undefined): number {
  return report === undefined ? 0 : fullAt(bucket, report)
}

async function countProcesses(query: Query): Promise<number> {
  const [row] = await query(
    `select count(*) from tollgate_limit_processes where seen_at > ${now} - ${processMs}`,
  )
  return Number(row?.[0] ?? 1)
}
