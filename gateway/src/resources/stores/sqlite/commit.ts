import type { DatabaseSync } from 'node:sqlite'
import {
  type CommittedRows,
  maxStoredRemovals,
  type RewrittenRow,
  type RowChanges,
  type RowKey,
} from '../row-driver.ts'

/** Writes changes in the write transaction. The generation increases unless nothing changed. */
export function writeChanges(writer: DatabaseSync, changes: RowChanges): CommittedRows {
  const { puts, removes, at } = changes
  const state = writer.prepare('select generation, revision_floor from tollgate_state').get()
  const generation = Number(state?.['generation'])
  const next = generation + 1
  const put = writer.prepare(`
    insert into tollgate_resources (kind, id, value, revision, created_at, updated_at, generation)
    values (?1, ?2, ?3, ?6, ?4, ?4, ?5)
    on conflict (kind, id) do update set
      value = excluded.value, revision = revision + 1, updated_at = excluded.updated_at, generation = excluded.generation
    returning revision, created_at`)
  const deleteRemoval = writer.prepare(
    'delete from tollgate_removals where kind = ? and id = ? returning revision',
  )
  const written = puts.map(([kind, id, text]) => {
    const last = Number(deleteRemoval.get(kind, id)?.['revision'] ?? 0)
    const first = 1 + Math.max(last, Number(state?.['revision_floor']))
    const row = put.get(kind, id, text, at, next, first)
    return { revision: Number(row?.['revision']), createdAt: String(row?.['created_at']) }
  })
  const remove = writer.prepare('delete from tollgate_resources where kind = ? and id = ? returning revision')
  const insertRemoval = writer.prepare(
    'insert into tollgate_removals (kind, id, generation, revision) values (?, ?, ?, ?)',
  )
  const removedRevisions = new Map<RowKey, number>()
  for (const key of removes) {
    const row = remove.get(...key)
    if (row === undefined) continue
    const revision = Number(row['revision'])
    insertRemoval.run(...key, next, revision)
    removedRevisions.set(key, revision)
  }
  const removed = [...removedRevisions.keys()]
  if (removed.length > 0) pruneRemovals(writer)
  if (written.length === 0 && removed.length === 0) return { generation, puts: [], removed: [] }
  writer.prepare('update tollgate_state set generation = ?').run(next)
  const revisions = new Map(removed.map((key) => [rowName(key), removedRevisions.get(key) ?? 0]))
  for (const [index, [kind, id]] of puts.entries())
    revisions.set(rowName([kind, id]), written[index]?.revision ?? 0)
  writeHistory(writer, changes, revisions)
  return { generation: next, puts: written, removed }
}

function rowName(key: RowKey): string {
  return JSON.stringify(key)
}

/** Appends to the history, and deletes its oldest rows. Removals without a record have no revision. */
function writeHistory(
  writer: DatabaseSync,
  { history, at }: RowChanges,
  revisions: ReadonlyMap<string, number>,
): void {
  if (history === undefined || history.rows.length === 0) return
  let number = Number(writer.prepare('select max(number) as last from tollgate_history').get()?.['last'] ?? 0)
  const insert = writer.prepare('insert into tollgate_history values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  for (const row of history.rows) {
    const [kind, id] = row
    const revision = revisions.get(rowName([kind, id]))
    if (revision === undefined) continue
    number += 1
    insert.run(number, at, revision, ...row)
  }
  writer.prepare('delete from tollgate_history where number <= ?').run(number - history.retained)
}

/** Replaces stored texts; rows with another revision are skipped. */
export function rewriteRows(writer: DatabaseSync, rows: readonly RewrittenRow[]): void {
  const update = writer.prepare(
    'update tollgate_resources set value = ?3 where kind = ?1 and id = ?2 and revision = ?4',
  )
  for (const row of rows) update.run(...row)
}

/** Deletes the oldest removals. Readers from an earlier generation receive all rows. */
function pruneRemovals(writer: DatabaseSync): void {
  const oldest = writer
    .prepare('select generation from tollgate_removals order by generation desc limit 1 offset ?')
    .get(maxStoredRemovals)?.['generation']
  if (oldest === undefined) return
  writer
    .prepare(
      `update tollgate_state set deltas_since = ?1, revision_floor = max(
        revision_floor, (select max(revision) from tollgate_removals where generation <= ?1))`,
    )
    .run(Number(oldest))
  writer.prepare('delete from tollgate_removals where generation <= ?').run(Number(oldest))
}
