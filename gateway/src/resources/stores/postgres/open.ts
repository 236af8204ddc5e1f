import { type Migrations, tooNew } from '../migrations.ts'
import { StoreUnavailable } from '../store.ts'
import type { Query } from './client.ts'

/** Advisory lock of all writers and of migrations; an arbitrary number. */
export const lockNumber = '7810205312473'

/** Creates or updates the schema. Rejects if it is newer than this version. */
export async function migrate(query: Query, migrations: Migrations): Promise<void> {
  const version = await schemaVersion(query)
  const refusal = tooNew(version, migrations)
  if (refusal !== undefined)
    throw new StoreUnavailable(`the Postgres database cannot be used: ${refusal}`, undefined)
  if (version === migrations.length) return
  await query("begin isolation level read committed read write; set local lock_timeout = '10s'")
  await query(`select pg_advisory_xact_lock(${lockNumber})`)
  await query(
    'create table if not exists tollgate_migrations (version integer primary key, applied_at text not null)',
  )
  const from = await schemaVersion(query)
  for (const [index, sql] of migrations.entries()) {
    if (index < from) continue
    await query(sql)
    await query('insert into tollgate_migrations (version, applied_at) values ($1, $2)', [
      index + 1,
      new Date().toISOString(),
    ])
  }
  await query('commit')
}

async function schemaVersion(query: Query): Promise<number> {
  const [found] = await query("select to_regclass('tollgate_migrations') is not null")
  if (found?.[0] !== true) return 0
  const [row] = await query('select max(version) from tollgate_migrations')
  return Number(row?.[0] ?? 0)
}
