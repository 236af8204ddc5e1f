import { DatabaseUnavailable } from '../database-unavailable.ts'
import { type Migrations, tooNew } from '../migrations.ts'
import type { Query } from './client.ts'

/**
 * Creates or updates the schema under an advisory lock. Rejects if the schema is newer than this version.
 */
export async function migrate(query: Query, migrations: Migrations, lockNumber: string): Promise<void> {
  const { table, steps } = migrations
  const version = await schemaVersion(query, table)
  const refusal = tooNew(version, migrations)
  if (refusal !== undefined)
    throw new DatabaseUnavailable(`the Postgres database cannot be used: ${refusal}`, undefined)
  if (version === steps.length) return
  await query("begin isolation level read committed read write; set local lock_timeout = '10s'")
  await query(`select pg_advisory_xact_lock(${lockNumber})`)
  await query(`create table if not exists ${table} (version integer primary key, applied_at text not null)`)
  const from = await schemaVersion(query, table)
  for (const [index, sql] of steps.entries()) {
    if (index < from) continue
    await query(sql)
    await query(`insert into ${table} (version, applied_at) values ($1, $2)`, [
      index + 1,
      new Date().toISOString(),
    ])
  }
  await query('commit')
}

async function schemaVersion(query: Query, table: string): Promise<number> {
  const [found] = await query(`select to_regclass('${table}') is not null`)
  if (found?.[0] !== true) return 0
  const [row] = await query(`select max(version) from ${table}`)
  return Number(row?.[0] ?? 0)
}
