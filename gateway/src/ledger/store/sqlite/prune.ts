import type { DatabaseSync } from 'node:sqlite'
import { dayMs, hourMs } from '../../../lib/duration.ts'

/** Deletes the oldest rows that completed before `before`, at most `most`. Returns their number. */
export function pruneRequests(db: DatabaseSync, before: number, most: number): number {
  const oldest = 'from tollgate_requests where completed_at < ? order by completed_at, id limit ?'
  db.prepare(`delete from tollgate_request_details where id in (select id ${oldest})`).run(before, most)
  const deletion = `delete from tollgate_requests where rowid in (select rowid ${oldest})`
  return Number(db.prepare(deletion).run(before, most).changes)
}

/** Settlements are recorded longer, because they must not be repeated. */
const settlementsMs = 366 * dayMs

/** Deletes sums, windows, uses of keys and batch numbers that ended before `before`, at most `most`. */
export function pruneUsage(db: DatabaseSync, before: number, most: number): number {
  const deletions: readonly [sql: string, before: number][] = [
    [deleteOldest('tollgate_usage_hours', 'start', '(start, id)'), before - hourMs],
    [deleteOldest('tollgate_usage_days', 'start', '(start, id)'), before - dayMs],
    [deleteOldest('tollgate_budgets', 'window_end', 'id'), before],
    [deleteOldest('tollgate_keys_used', 'last_used_at', 'key_id'), before],
    [deleteOldest('tollgate_ledger_sources', 'at', 'source'), before],
    [deleteOldest('tollgate_settlements', 'at', 'request_id'), before - settlementsMs],
  ]
  let deleted = 0
  for (const [sql, end] of deletions) {
    if (deleted < most) deleted += Number(db.prepare(sql).run(end, most - deleted).changes)
  }
  return deleted
}

function deleteOldest(table: string, time: string, key: string): string {
  const columns = key.replace(/[()]/g, '')
  return `delete from ${table} where ${key} in (select ${columns} from ${table} where ${time} < ? limit ?)`
}
