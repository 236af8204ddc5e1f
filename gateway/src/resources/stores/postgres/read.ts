import { DatabaseUnavailable } from '../../../database/database-unavailable.ts'
import type { Query } from '../../../database/postgres/client.ts'
import { pageRows, type RowDelta, type RowKey, type StoredRow } from '../row-driver.ts'

const columns = 'select kind, id, value, revision, created_at, updated_at from tollgate_resources'

/** Begins a transaction and reads state, removals and the first page in one round trip. */
export async function selectRows(query: Query, start: string, since: number | undefined): Promise<RowDelta> {
  const known = Number.isSafeInteger(since) ? since : undefined
  const state = 'select generation, deltas_since from tollgate_state'
  const texts = known === undefined ? [state, ...declareAll] : [state, ...declareSince(known)]
  const answers = await query.all([start, ...texts].join('; '))
  const [found, ...lists] = answers.slice(-texts.length)
  const [generation, deltasSince] = (found?.[0] ?? []).map(Number)
  if (generation === undefined || deltasSince === undefined)
    throw new DatabaseUnavailable('the Postgres database cannot be used: tollgate_state is empty', undefined)
  const first = lists.at(-1) ?? []
  if (known === undefined) return { generation, complete: true, removed: [], pages: pages(query, first) }
  if (known <= generation && known >= deltasSince) {
    const removed = (lists.at(-3) ?? []).map(toKey)
    return { generation, complete: false, removed, pages: pages(query, first) }
  }
  const all = await query.all(['close found', 'set local enable_seqscan = on', ...declareAll].join('; '))
  return { generation, complete: true, removed: [], pages: pages(query, all.at(-1) ?? []) }
}

const nextPage = `fetch ${pageRows} from found`
const declareAll = [
  'set local enable_seqscan = on',
  `declare found no scroll cursor for ${columns}`,
  nextPage,
]

// A delta is small, but statistics from before a large change do not reflect that: the index takes 1 ms, a
// scan of 100,000 rows 10 to 50 ms. Plans without sequential scans have such costs that the server would
// spend 0.5 s on JIT compilation.
function declareSince(generation: number): string[] {
  return [
    'set local enable_seqscan = off',
    'set local jit = off',
    `select kind, id from tollgate_removals where generation > ${generation}`,
    `declare found no scroll cursor for ${columns} where generation > ${generation}`,
    nextPage,
  ]
}

export function toKey([kind, id]: readonly unknown[]): RowKey {
  return [String(kind), String(id)]
}

async function* pages(
  query: Query,
  first: readonly (readonly unknown[])[],
): AsyncGenerator<readonly StoredRow[]> {
  for (let rows = first; ; rows = await query(nextPage)) {
    yield rows.map(toRow)
    if (rows.length < pageRows) break
  }
}

function toRow([kind, id, text, revision, createdAt, updatedAt]: readonly unknown[]): StoredRow {
  return [String(kind), String(id), String(text), Number(revision), String(createdAt), String(updatedAt)]
}
