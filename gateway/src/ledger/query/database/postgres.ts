import { DatabaseUnavailable } from '../../../database/database-unavailable.ts'
import { createPostgresPool, readPostgresUrl, sqlState } from '../../../database/postgres/client.ts'
import { type QueryDatabase, QueryLate, queryTimeoutMs, type Select } from './database.ts'

/** SQLSTATE of a statement that `statement_timeout` ended. */
const queryCanceled = '57014'

/** Connects to Postgres for queries: each in a read-only transaction with a time limit of the server. */
export function createPostgresQueries(
  url: string,
  maxConnections: number,
  timeoutMs: number = queryTimeoutMs,
): QueryDatabase {
  const pool = createPostgresPool(readPostgresUrl(url, 'config.logging.database.url'), maxConnections, {
    onBroken() {},
    onOutage() {},
  })
  const begin = [
    'begin transaction isolation level repeatable read read only',
    `set local statement_timeout = ${timeoutMs}`,
    // The estimates of statements with limits trigger compilations of 0.5 s.
    'set local jit = off',
    // A bounded number of rows is read in the order of an index; bitmaps would read and sort all of them.
    'set local enable_bitmapscan = off',
    'set local max_parallel_workers_per_gather = 0',
  ].join('; ')

  return {
    dialect: {
      contains: (column) => `strpos(lower(${column} collate "C"), ?) > 0`,
      inTime: '1 = 1',
      ordersParts: true,
    },
    async use(run) {
      const deadline = performance.now() + timeoutMs
      try {
        return await pool.use(async (query) => {
          await query.all(begin)
          const select: Select = async ({ text, values }) => {
            if (performance.now() > deadline) throw new DatabaseUnavailable('late', new QueryLate())
            let index = 0
            const numbered = text.replaceAll('?', () => {
              index += 1
              return `$${index}`
            })
            return await query(numbered, values, timeoutMs + 1_000)
          }
          const result = await run(select)
          await query('commit')
          return result
        })
      } catch (error) {
        if (error instanceof DatabaseUnavailable && error.cause instanceof QueryLate) throw error.cause
        if (sqlState(error) === queryCanceled) throw new QueryLate()
        throw error
      }
    },
    close: () => pool.close(),
  }
}
