import { type Query, shortQueryTimeoutMs } from '../../../database/postgres/client.ts'
import {
  type CommittedRows,
  type HistoryRowChanges,
  maxStoredRemovals,
  type RewrittenRow,
  type RowChanges,
  type RowKey,
} from '../row-driver.ts'
import { toKey } from './read.ts'

const historyColumns = 10
const noHistory: HistoryRowChanges = { rows: [], retained: Number.MAX_SAFE_INTEGER }

/** Channel of notifications with the generation of each commit. */
export const channel = 'tollgate_resources'

/**
 * Commits in one statement: a further round trip would block all writers for longer. Parts of a statement see
 * the tables before the statement; changes of one part reach another through returned rows.
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
    ),
    note as (
      select * from unnest($7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[], $13::text[],
        $14::text[], $15::text[], $16::text[]) with ordinality
        as note (kind, id, op, origin, reverts, principal, address, request_id, before, after, position)
    ),
    changed as (select kind, id, revision from put union all select kind, id, revision from gone),
    last as (select coalesce(max(number), 0) as number from tollgate_history),
    history as (
      insert into tollgate_history (number, at, revision, kind, id, op, origin, reverts, principal, address,
        request_id, before, after)
      select last.number + row_number() over (order by note.position), $6, changed.revision, note.kind, note.id,
        note.op, note.origin, note.reverts, note.principal, note.address, note.request_id, note.before, note.after
      from note join changed on changed.kind = note.kind and changed.id = note.id cross join last
    ),
    forgotten as (
      delete from tollgate_history where number <= (select number from last) + (select count(*) from note) - $17::bigint
    )
  select 'state', pg_notify('${channel}', generation::text)::text, null, generation, null from state
  union all select 'put', kind, id, revision, created_at from put
  union all select 'gone', kind, id, null, null from gone`

/** Writes changes in the write transaction. The generation increases unless nothing changed. */
export async function writeChanges(
  query: Query,
  before: number,
  { puts, removes, at, history = noHistory }: RowChanges,
): Promise<CommittedRows> {
  const columnsOf = (rows: readonly (readonly unknown[])[], count: number) =>
    Array.from({ length: count }, (_, column) => rows.map((row) => row[column]))
  const characters =
    puts.reduce((sum, [, , text]) => sum + text.length, 0) +
    history.rows.reduce((sum, row) => sum + (row[8]?.length ?? 0) + (row[9]?.length ?? 0), 0)
  // Plus 2 s per million characters, for a busy server.
  const timeoutMs = shortQueryTimeoutMs + characters / 500
  const values = [
    ...columnsOf(puts, 3),
    ...columnsOf(removes, 2),
    at,
    ...columnsOf(history.rows, historyColumns),
    history.retained,
  ]
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

const rewriteSql = `
  update tollgate_resources stored set value = given.value
  from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as given (kind, id, value, revision)
  where stored.kind = given.kind and stored.id = given.id and stored.revision = given.revision`

/** Replaces stored texts; rows with another revision are skipped. */
export async function rewriteRows(query: Query, rows: readonly RewrittenRow[]): Promise<void> {
  const columnsOf = (column: 0 | 1 | 2 | 3) => rows.map((row) => row[column])
  await query(rewriteSql, [columnsOf(0), columnsOf(1), columnsOf(2), columnsOf(3)])
}
