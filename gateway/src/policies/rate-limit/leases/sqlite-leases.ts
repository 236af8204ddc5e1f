import type { DatabaseSync } from 'node:sqlite'
import { createSerialTables } from '../../../database/sqlite/serial-tables.ts'
import {
  type LeaseStore,
  leasesText,
  mostPruned,
  processMs,
  readBucket,
  sqliteMigrations,
} from './lease-store.ts'
import { fullAt, settle } from './settle.ts'

/** Shared limits in a SQLite file. Blocks its thread. `now` is the time of the machine. */
export function createSqliteLeases(path: string, now: () => number): LeaseStore {
  const { write, close } = createSerialTables(path, sqliteMigrations, { survivesPowerLoss: false })

  const countProcesses = (db: DatabaseSync): number =>
    Number(
      db
        .prepare('select count(*) as count from tollgate_limit_processes where seen_at > ?')
        .get(now() - processMs)?.['count'],
    )

  return {
    exchange: (process, reports) =>
      write((db) => {
        const nowMs = now()
        const select = db.prepare(
          'select used, refilled_at, leases from tollgate_limit_buckets where limit_id = ? and key = ?',
        )
        const put = db.prepare(
          `insert into tollgate_limit_buckets (limit_id, key, used, refilled_at, full_at, leases)
          values (?, ?, ?, ?, ?, ?) on conflict (limit_id, key) do update set used = excluded.used,
          refilled_at = excluded.refilled_at, full_at = excluded.full_at, leases = excluded.leases`,
        )
        const replies = reports.map((report) => {
          const row = select.get(report.limit, report.key)
          const found = row && readBucket([row['used'], row['refilled_at'], row['leases']])
          const { bucket, reply } = settle(found, report, process, nowMs)
          const { used, refilledAt } = bucket
          put.run(report.limit, report.key, used, refilledAt, fullAt(bucket, report), leasesText(bucket))
          return reply
        })
        return { replies, processes: countProcesses(db) }
      }),
    announce: (process) =>
      write((db) => {
        db.prepare(
          `insert into tollgate_limit_processes (id, seen_at) values (?, ?)
          on conflict (id) do update set seen_at = excluded.seen_at`,
        ).run(process, now())
      }),
    prune: () =>
      write((db) => {
        db.prepare('delete from tollgate_limit_processes where seen_at < ?').run(now() - 10 * processMs)
        db.prepare(
          `delete from tollgate_limit_buckets where (limit_id, key) in (
            select limit_id, key from tollgate_limit_buckets where full_at < ? limit ${mostPruned})`,
        ).run(now())
      }),
    leave: (process) =>
      write((db) => {
        db.prepare('delete from tollgate_limit_processes where id = ?').run(process)
      }),
    close: async () => close(),
  }
}
