import { Client } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { DatabaseUnavailable } from '../../src/database/database-unavailable.ts'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import type { LedgerStore } from '../../src/ledger/store/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { endAfter } from '../support/cleanup.ts'
import { budgetCharge, describeLedger, entryAt } from '../support/ledger-suite.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'

let postgres: TestPostgres

async function query(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  const client = new Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' })
    return rows
  } finally {
    await client.end()
  }
}

async function openStore(url: string): Promise<LedgerStore> {
  return await createLedgerStore(
    { url, field: 'config.logging.database.url', maxConnections: 2 },
    systemClock,
  )
}

describe.skipIf(postgresMissing !== undefined)(`on Postgres (${postgresMissing ?? 'here'})`, () => {
  beforeAll(async () => {
    postgres = await startPostgres()
  })

  describeLedger('Postgres', async () => {
    const url = await postgres.createDatabase()
    return { open: () => openStore(url), sql: (text) => query(url, text) }
  })

  it('a database with another encoding stores escaped texts and exact amounts', async () => {
    const url = await postgres.createDatabase()
    await query(url, "create database latin encoding 'LATIN1' locale 'C' template template0")
    const latin = url.replace(/[^/]*$/, 'latin')
    const store = await openStore(latin)
    endAfter('test', () => store.close())
    const charges = [
      budgetCharge({ value: '\u4e2d', amount: 7 }),
      budgetCharge({ value: '\u6587', amount: 8 }),
    ]
    const entries = [entryAt('a', 0, { user: '\u{1F600}', guards: '["\u4e2d"]', charges })]
    const batch = { source: 'a', first: 1, number: 1, entries, sums: [] }
    expect(await store.write(batch)).toMatchObject({ kind: 'written' })
    expect(await store.write(batch)).toEqual({ kind: 'duplicate' })
    const rows = 'select user_name, guards, cost_picodollars from tollgate_requests'
    expect(await query(latin, rows)).toEqual([['\\ud83d\\ude00', null, '123456789']])
    const { totals } = await store.budgetTotals(undefined, -1)
    expect(new Map(totals.map(({ value, used }) => [value, used]))).toEqual(
      new Map([
        ['\\u4e2d', 7n],
        ['\\u6587', 8n],
      ]),
    )
  })

  it('a write fails within its time limit while the server does not respond, and counts once later', async () => {
    const proxy = await startPostgresProxy(postgres.port)
    const url = await postgres.createDatabase()
    const store = await openStore(proxy.through(url))
    endAfter('test', () => store.close())
    await store.open()
    const batch = { source: 'a', first: 1, number: 1, entries: [entryAt('a', 0)], sums: [] }
    proxy.hangsAt = 'commit'
    await expect(store.write(batch)).rejects.toThrow(DatabaseUnavailable)
    proxy.hangsAt = undefined
    proxy.hangs = false
    proxy.cut()
    const result = await store.write(batch)
    expect(['written', 'duplicate']).toContain(result.kind)
    expect(await query(url, 'select requests from tollgate_usage_hours')).toEqual([['1']])
  }, 60_000)

  it('a change of a budget is returned although a later transaction was committed before', async () => {
    const url = await postgres.createDatabase()
    const store = await openStore(url)
    endAfter('test', () => store.close())
    const charge = (value: string, number: number) => {
      const charges = [budgetCharge({ value })]
      return store.write({
        source: 'a',
        first: number,
        number,
        entries: [entryAt(`${number}`, 0, { charges })],
        sums: [],
      })
    }
    await charge('early', 1)
    const early = new Client(url)
    await early.connect()
    endAfter('test', () => early.end())
    await early.query(
      "begin; update tollgate_budgets set used = 50, changed = txid_current() where value = 'early'",
    )
    await charge('late', 2)
    const { since } = await store.budgetTotals(undefined, 0)
    await early.query('commit')
    const { totals } = await store.budgetTotals(since, 0)
    expect(totals.find(({ value }) => value === 'early')?.used).toBe(50n)
  })
})
