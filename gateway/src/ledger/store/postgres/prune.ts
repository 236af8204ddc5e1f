import type { Query } from '../../../database/postgres/client.ts'
import { dayMs, hourMs } from '../../../lib/duration.ts'

/** Executes a statement that returns a number of rows. One round trip. */
export async function prune(query: Query, statement: string): Promise<number> {
  const answers = await query.all(`begin isolation level read committed read write;
    set local statement_timeout = '10s'; ${statement}; commit`)
  return Number(answers.at(-2)?.[0]?.[0] ?? 0)
}

/**
 * Deletes the oldest requests that completed before `before`, at most `most`. Other replicas delete different
 * ones at the same time.
 */
export function deleteRequests(before: number, most: number): string {
  return `
    with old as (
      select id from tollgate_requests where completed_at < ${Math.trunc(before)}
      order by completed_at, id limit ${Math.trunc(most)} for update skip locked
    ),
    details as (delete from tollgate_request_details stored using old where stored.id = old.id),
    gone as (delete from tollgate_requests stored using old where stored.id = old.id returning 1)
    select count(*) from gone`
}

/** Settlements are recorded longer, because they must not be repeated. */
const settlementsMs = 366 * dayMs

/** Deletes sums, windows, uses of keys and batch numbers that ended before `before`, at most `most`. */
export async function pruneUsage(query: Query, before: number, most: number): Promise<number> {
  const tables: readonly [table: string, time: string, key: string, before: number][] = [
    ['tollgate_usage_hours', 'start', 'start, id', before - hourMs],
    ['tollgate_usage_days', 'start', 'start, id', before - dayMs],
    ['tollgate_budgets', 'window_end', 'id', before],
    ['tollgate_keys_used', 'last_used_at', 'key_id', before],
    ['tollgate_ledger_sources', 'at', 'source', before],
    ['tollgate_settlements', 'at', 'request_id', before - settlementsMs],
  ]
  let deleted = 0
  for (const [table, time, key, end] of tables) {
    if (deleted >= most) break
    deleted += await prune(query, deleteOldest(table, time, key, { before: end, most: most - deleted }))
  }
  return deleted
}

function deleteOldest(
  table: string,
  time: string,
  key: string,
  { before, most }: { before: number; most: number },
): string {
  return `
    with old as (
      select ${key} from ${table} where ${time} < ${Math.trunc(before)}
      limit ${Math.trunc(most)} for update skip locked
    ),
    gone as (delete from ${table} where (${key}) in (select ${key} from old) returning 1)
    select count(*) from gone`
}
