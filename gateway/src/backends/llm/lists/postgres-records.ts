import type { Query } from '../../../database/postgres/client.ts'
import { createMigratedPool } from '../../../database/postgres/migrated-pool.ts'
import type { FoundObjects, ObjectQuery, ObjectRecord } from '../../../lib/planes/object-records.ts'
import {
  additionsPerPrune,
  listedMs,
  mostListed,
  mostPruned,
  postgresMigrations,
  type RecordStore,
} from './record-store.ts'

/** Advisory lock of the migrations; an arbitrary number. */
const lockNumber = '7810205312482'
const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Objects of clients in Postgres, on one connection; connects on first use. */
export function createPostgresRecords(url: string): RecordStore {
  const { use, close } = createMigratedPool({ url, max: 1, migrations: postgresMigrations, lockNumber })
  let additions = 0

  async function add(query: Query, { owner, kind, id, text, purpose }: ObjectRecord): Promise<void> {
    await query(
      `insert into tollgate_llm_objects (owner, kind, id, text, purpose, created_at)
      values ($1, $2, $3, $4, $5, ${now}) on conflict (owner, kind, id) do nothing`,
      [owner, kind, id, text, purpose],
    )
    additions += 1
    if (additions % additionsPerPrune === 0) await prune(query, owner, kind)
  }

  return {
    run: (request) =>
      use(async (query) => {
        if (request.kind === 'find') return find(query, request.query)
        if (request.kind === 'add') await add(query, request.record)
        else {
          const { owner, kind, id } = request.key
          await query(
            'update tollgate_llm_objects set removed = 1 where owner = $1 and kind = $2 and id = $3',
            [owner, kind, id],
          )
        }
        return undefined
      }),
    close,
  }
}

async function prune(query: Query, owner: string, kind: string): Promise<void> {
  await query(
    `delete from tollgate_llm_objects where owner = $1 and kind = $2 and seq <= (select seq from tollgate_llm_objects
      where owner = $1 and kind = $2 order by seq desc limit 1 offset ${mostListed})`,
    [owner, kind],
  )
  await query(
    `delete from tollgate_llm_objects where seq in (select seq from tollgate_llm_objects
      where created_at < ${now} - ${listedMs} limit ${mostPruned} for update skip locked)`,
  )
}

async function find(
  query: Query,
  { owner, kind, purpose, cursor, order, limit }: ObjectQuery,
): Promise<FoundObjects> {
  const [start] =
    cursor === undefined
      ? []
      : await query('select seq from tollgate_llm_objects where owner = $1 and kind = $2 and id = $3', [
          owner,
          kind,
          cursor,
        ])
  if (cursor !== undefined && start === undefined) return undefined
  const [side, direction] = order === 'newest first' ? ['<', 'desc'] : ['>', 'asc']
  const rows = await query(
    `select text from tollgate_llm_objects where owner = $1 and kind = $2 and removed = 0
      and ($3::text is null or purpose = $3) and ($4::bigint is null or seq ${side} $4)
    order by seq ${direction} limit $5`,
    [owner, kind, purpose ?? null, start?.[0] ?? null, limit],
  )
  return rows.map(([text]) => String(text))
}
