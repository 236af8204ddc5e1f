import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { historyRows, historySql } from '../history-rows.ts'
import { type HistoryRows, pageRows, type RowKey, type StoredRow } from '../row-driver.ts'
import type { HistoryQuery } from '../store.ts'
import type { SqliteHead, SqlitePage } from './protocol.ts'

export type Selection = { readonly head: SqliteHead; readonly rows: Iterator<unknown> }

const maxPageCharacters = 256 * 1024
const columns = 'select kind, id, value, revision, created_at, updated_at from tollgate_resources'

/**
 * Selects the rows changed since a generation; all rows if `since` is undefined, newer or too old for a
 * delta.
 */
export function selectRows(db: DatabaseSync, since: number | undefined): Selection {
  const state = db.prepare('select generation, deltas_since from tollgate_state').get()
  if (state === undefined) throw new Error('its table tollgate_state is empty')
  const generation = Number(state['generation'])
  if (since === undefined || since > generation || since < Number(state['deltas_since'])) {
    return {
      head: { generation, complete: true, removed: [] },
      rows: asArrays(db.prepare(columns)).iterate(),
    }
  }
  const removed = asArrays(db.prepare('select kind, id from tollgate_removals where generation > ?'))
    .all(since)
    .map((row): RowKey => (Array.isArray(row) ? [String(row[0]), String(row[1])] : ['', '']))
  return {
    head: { generation, complete: false, removed },
    rows: asArrays(db.prepare(`${columns} where generation > ?`)).iterate(since),
  }
}

export function readGeneration(db: DatabaseSync): number {
  return Number(db.prepare('select generation from tollgate_state').get()?.['generation'])
}

/** The next rows of a selection, limited by their number and their size. */
export function readPage(rows: Iterator<unknown>): SqlitePage {
  const page: StoredRow[] = []
  for (let characters = 0; page.length < pageRows && characters < maxPageCharacters; ) {
    const { done, value: row } = rows.next()
    if (done === true) return { rows: page, isLast: true }
    if (!Array.isArray(row)) continue
    const [kind, id, text, revision, createdAt, updatedAt]: unknown[] = row
    page.push([
      String(kind),
      String(id),
      String(text),
      Number(revision),
      String(createdAt),
      String(updatedAt),
    ])
    characters += String(text).length
  }
  return { rows: page, isLast: false }
}

/** Reads rows of the history. */
export function readHistory(db: DatabaseSync, query: HistoryQuery): HistoryRows {
  const { text, values } = historySql(query, (position) => `?${position}`)
  const found: unknown[] = asArrays(db.prepare(text)).all(...values)
  return historyRows(
    found.filter((row) => Array.isArray(row)),
    query,
  )
}

function asArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}
