import { Client } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import type { LedgerStore } from '../../src/ledger/store/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { endAfter } from '../support/cleanup.ts'
import { budgetCharge, describeLedger, entryAt } from '../support/ledger-suite.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'

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
