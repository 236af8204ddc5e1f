import { DatabaseSync } from 'node:sqlite'
import { until } from './wait.ts'

/** A row of `tollgate_requests` with the columns of its details. */
export type LedgerRow = Record<string, unknown>

/** Rows of a ledger in SQLite once there are so many, oldest first. */
export function ledgerRows(url: string, count: number): Promise<LedgerRow[]> {
  return until(`${count} rows in the ledger`, () => {
    const rows = readRows(url.slice('sqlite://'.length))
    return rows.length >= count ? rows : undefined
  })
}

/** None while the database does not exist or is locked. */
function readRows(path: string): LedgerRow[] {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { readOnly: true })
    return database
      .prepare(
        `select r.*, d.request, d.response, d.explanation from tollgate_requests r
         left join tollgate_request_details d on d.id = r.id order by r.id`,
      )
      .all()
  } catch {
    return []
  } finally {
    database?.close()
  }
}
