import type { Migrations } from '../../../database/migrations.ts'
import type { LeaseReplies, LeaseReport } from '../../../lib/planes/lease-exchange.ts'
import type { SharedBucket, SharedLease } from './settle.ts'

/** Buckets of shared limits in a database. Rejects with `DatabaseUnavailable`. */
export type LeaseStore = {
  /** Applies the reports of a process, each of another bucket, in one transaction. */
  exchange(process: string, reports: readonly LeaseReport[]): Promise<LeaseReplies>
  /** Marks a process as running. Replies count those of the last 10 seconds. */
  announce(process: string): Promise<void>
  /** Deletes full buckets, at most 1,000, and processes that have ended. */
  prune(): Promise<void>
  /** Ends the leases of a process. */
  leave(process: string): Promise<void>
  close(): Promise<void>
}

/** Time after the last sign of a process at which it has ended. */
export const processMs = 10_000
export const mostPruned = 1_000

// Times are milliseconds since the epoch. A full bucket equals a missing one: `full_at` is the time from
// which its row may be deleted.
const tables = (text: string, integer: string) => `create table tollgate_limit_buckets (
    limit_id ${text} not null,
    key ${text} not null,
    used ${integer} not null,
    refilled_at ${integer} not null,
    full_at ${integer} not null,
    leases text not null,
    primary key (limit_id, key)
  );
  create index tollgate_limit_buckets_full on tollgate_limit_buckets (full_at);
  create table tollgate_limit_processes (
    id ${text} primary key,
    seen_at ${integer} not null
  );`

const table = 'tollgate_limit_migrations'
export const sqliteMigrations: Migrations = { table, steps: [tables('text', 'integer')] }
export const postgresMigrations: Migrations = { table, steps: [tables('text collate "C"', 'bigint')] }

/** Reads the columns `used`, `refilled_at` and `leases` of a row. */
export function readBucket([used, refilledAt, leases]: readonly unknown[]): SharedBucket {
  return { used: Number(used), refilledAt: Number(refilledAt), leases: readLeases(String(leases)) }
}

function readLeases(text: string): Record<string, SharedLease> {
  const leases: Record<string, SharedLease> = {}
  const read: unknown = JSON.parse(text)
  for (const [process, lease] of Object.entries(read ?? {})) {
    if (!Array.isArray(lease)) continue
    leases[process] = { units: Number(lease[0]), until: Number(lease[1]) }
  }
  return leases
}

/** The column `leases` of a bucket. */
export function leasesText({ leases }: SharedBucket): string {
  return JSON.stringify(
    Object.fromEntries(
      Object.entries(leases).map(([process, { units, until }]) => [process, [units, until]]),
    ),
  )
}
