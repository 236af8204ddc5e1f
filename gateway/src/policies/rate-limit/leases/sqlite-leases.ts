import type { DatabaseSync } from 'node:sqlite'
import { DatabaseUnavailable } from '../../../database/database-unavailable.ts'
import { createSqliteConnection } from '../../../database/sqlite/connection.ts'
import { describeError } from '../../../database/sqlite/errors.ts'
import {
  type LeaseStore,
  leasesText,
  mostPruned,
  processMs,
  readBucket,
  sqliteMigrations,
} from './lease-store.ts'
import { fullAt, settle } from './settle.ts'

const lockWaitMs = 2_000

/** Shared limits in a SQLite file. Blocks its thread. `now` is the time of the machine. */
export function createSqliteLeases(path: string, now: () => number): LeaseStore {
  const connection = createSqliteConnection(path, sqliteMigrations, { onReplaced() {}, beforeClose() {} })

  /** One transaction at a time; waits for the lock of other processes in between. */
  let last: Promise<unknown> = Promise.resolve()
  function write<T>(run: (writer: DatabaseSync) => T): Promise<T> {
    const done = last.then(() => writeNow(run))
    last = done.catch(() => undefined)
    return done
  }

  async function writeNow<T>(run: (writer: DatabaseSync) => T): Promise<T> {
    try {
      // Usage of the last second may be lost with the power: no synchronisation with the disk.
      connection.current().writer.exec('pragma synchronous = off')
      const writer = await connection.beginWrite(lockWaitMs)
      const result = run(writer)
      connection.commit()
      return result
    } catch (error) {
      rollBack()
      throw new DatabaseUnavailable(describeError(error, path), error)
    }
  }

  function rollBack(): void {
    try {
      connection.rollback()
    } catch {
      // The connection is opened again by the next call.
      connection.close()
    }
  }

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
    close: async () => connection.close(),
  }
}
