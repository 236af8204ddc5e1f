import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { isPostgresUrl, sqlitePathOf } from '../../src/database/url.ts'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type FillOptions, fillSql } from './synthetic-ledger.ts'

/** A database that runs the statements of `fillSql`. */
type Filler = {
  run(sql: string): Promise<void>
  indexes(): Promise<readonly IndexOf[]>
  close(): Promise<void>
}
type IndexOf = { readonly name: string; readonly sql: string }

async function openFiller(url: string): Promise<Filler> {
  if (!isPostgresUrl(url)) {
    const db = new DatabaseSync(sqlitePathOf(url))
    db.exec('pragma synchronous = off; pragma journal_mode = wal; pragma cache_size = -1000000')
    return {
      run: async (sql) => db.exec(sql),
      async indexes() {
        const found = db
          .prepare(
            "select name, sql from sqlite_master where type = 'index' and sql is not null and tbl_name = 'tollgate_requests'",
          )
          .all()
        return found.map((row) => ({ name: String(row['name']), sql: String(row['sql']) }))
      },
      close: async () => db.close(),
    }
  }
  const client = new Client(url)
  await client.connect()
  await client.query("set synchronous_commit = off; set maintenance_work_mem = '1GB'")
  return {
    async run(sql) {
      await client.query(sql)
    },
    async indexes() {
      const found = await client.query(
        "select indexname, indexdef from pg_indexes where tablename = 'tollgate_requests' and indexname not like '%_pkey'",
      )
      return found.rows.map(({ indexname: name, indexdef: sql }) => ({
        name: String(name),
        sql: String(sql),
      }))
    },
    close: () => client.end(),
  }
}

/** Fills an empty database. Indexes are created afterwards, which takes a tenth of the time. */
export async function fillLedger(url: string, rows: number, options: FillOptions = {}): Promise<void> {
  const store = await createLedgerStore({ url, field: 'url', maxConnections: 2 }, systemClock)
  await store.open()
  await store.close()
  const filler = await openFiller(url)
  const indexes = await filler.indexes()
  for (const { name } of indexes) await filler.run(`drop index ${name}`)
  for (const sql of fillSql(isPostgresUrl(url) ? 'postgres' : 'sqlite', rows, options)) await filler.run(sql)
  for (const { sql } of indexes) await filler.run(sql)
  // As the server does by itself after a while.
  if (isPostgresUrl(url)) await filler.run('vacuum analyze')
  await filler.close()
}
