import { DatabaseSync } from 'node:sqlite'
import { DatabaseUnavailable } from '../../../database/database-unavailable.ts'
import { describeError } from '../../../database/sqlite/errors.ts'
import { identifyFile } from '../../../database/sqlite/files.ts'
import { type QueryDatabase, QueryLate, queryTimeoutMs, type Select } from './database.ts'

const busyTimeoutMs = 2_000

/**
 * Opens a SQLite file for queries, read-only. A file that is replaced is opened again. Statements block the
 * thread; those that read many rows check the time limit, because a thread cannot be ended during one.
 */
export function createSqliteQueries(path: string, timeoutMs: number = queryTimeoutMs): QueryDatabase {
  let open: { readonly db: DatabaseSync; readonly identity: string } | undefined
  let deadline = 0

  function checkTime(): number {
    if (performance.now() > deadline) throw new QueryLate()
    return 1
  }

  function close(): void {
    const closing = open
    open = undefined
    closing?.db.close()
  }

  function connect(): DatabaseSync {
    const identity = identifyFile(path)
    if (open?.identity === identity) return open.db
    close()
    const db = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs })
    db.exec('pragma query_only = on; pragma cache_size = -65536')
    db.function('tollgate_in_time', checkTime)
    open = { db, identity }
    return db
  }

  return {
    dialect: {
      contains: (column) => `instr(lower(${column}), ?) > 0`,
      // Once in some 256 rows, because a call takes longer than the row.
      inTime: '((random() & 255) <> 0 or tollgate_in_time())',
      ordersParts: false,
    },
    async use(run) {
      deadline = performance.now() + timeoutMs
      try {
        const db = connect()
        const select: Select = async ({ text, values }, options) => {
          checkTime()
          const statement = db.prepare(text)
          statement.setReturnArrays(true)
          if (options?.exact === true) statement.setReadBigInts(true)
          return statement.all(...values) as unknown as unknown[][]
        }
        return await run(select)
      } catch (error) {
        if (error instanceof QueryLate) throw error
        throw new DatabaseUnavailable(describeError(error, path), error)
      }
    },
    async close() {
      close()
    },
  }
}
