import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe } from 'vitest'
import { createPostgresQueries } from '../../src/ledger/query/database/postgres.ts'
import { createSqliteQueries } from '../../src/ledger/query/database/sqlite.ts'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { endAfter } from '../support/cleanup.ts'
import { describeQueries } from '../support/ledger-query-suite.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'

async function openStore(url: string) {
  const store = await createLedgerStore({ url, field: 'url', maxConnections: 2 }, systemClock)
  endAfter('test', () => store.close())
  await store.open()
  return store
}

describeQueries('SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-queries-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'ledger.db')
  return {
    store: await openStore(`sqlite://${path}`),
    open: (timeoutMs) => createSqliteQueries(path, timeoutMs),
    slowQuery:
      'with recursive n(x) as (select 1 union all select x + 1 from n where x < 100000000 and ((random() & 255) <> 0 or tollgate_in_time())) select count(*) from n',
  }
})

describe.skipIf(postgresMissing !== undefined)('', () => {
  let postgres: TestPostgres

  beforeAll(async () => {
    postgres = await startPostgres()
  })

  describeQueries('Postgres', async () => {
    const url = await postgres.createDatabase()
    return {
      store: await openStore(url),
      open: (timeoutMs) => createPostgresQueries(url, 2, timeoutMs),
      slowQuery: 'select pg_sleep(5)',
    }
  })
})
