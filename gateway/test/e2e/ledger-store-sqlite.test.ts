import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { endAfter } from '../support/cleanup.ts'
import { describeLedger, entryAt } from '../support/ledger-suite.ts'

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-ledger-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'ledger.db')
}

function openStore(path: string) {
  return createLedgerStore({ url: `sqlite://${path}`, field: 'url', maxConnections: 2 }, systemClock)
}

function runSql(path: string, text: string): readonly (readonly unknown[])[] {
  const database = new DatabaseSync(path, { timeout: 5000 })
  try {
    const statement = database.prepare(text)
    statement.setReadBigInts(true)
    statement.setReturnArrays(true)
    return (statement.all() as unknown as unknown[][]).map((row) =>
      row.map((value) =>
        typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value,
      ),
    )
  } finally {
    database.close()
  }
}

describeLedger('SQLite', () => {
  const path = newPath()
  return Promise.resolve({
    open: () => openStore(path),
    sql: async (text) => runSql(path, text),
  })
})

it.each(['sqlite://', 'sqlite::memory:'])('SQLite: %s is refused with the name of the field', async (url) => {
  const database = { url, field: 'config.logging.database.url', maxConnections: 1 }
  await expect(createLedgerStore(database, systemClock)).rejects.toThrow(
    'config.logging.database.url must name a file',
  )
})

it('SQLite: a write waits for the lock of another process without blocking the thread', async () => {
  const path = newPath()
  const store = await openStore(path)
  endAfter('test', () => store.close())
  await store.open()
  const other = new DatabaseSync(path)
  other.exec('begin immediate')
  const writing = store.write({ source: 'a', first: 1, number: 1, entries: [entryAt('a', 0)], sums: [] })
  // A blocked thread would never reach the timer.
  await new Promise((resolve) => setTimeout(resolve, 30))
  other.exec('commit')
  other.close()
  expect(await writing).toEqual({ kind: 'written', totals: [] })
})
