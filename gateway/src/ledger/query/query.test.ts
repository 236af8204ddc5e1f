import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ledgerEntry } from '../../../test/fixtures/ledger.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLedgerStore } from '../store/open.ts'
import { createLedgerQueries, type LedgerQueries } from './query.ts'

let folder: string
let url: string
const open: LedgerQueries[] = []
const logged: string[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-query-'))
  url = `sqlite://${join(folder, 'ledger.db')}`
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((queries) => queries.close()))
  rmSync(folder, { recursive: true, force: true })
  logged.length = 0
})

function start(timeoutMs?: number): LedgerQueries {
  const write = (_fields: object, message: string) => void logged.push(message)
  const log = { debug: write, info: write, warn: write, error: write, audit: write }
  const queries = createLedgerQueries({
    url,
    kind: 'sqlite',
    maxConnections: 2,
    log,
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
  open.push(queries)
  return queries
}

async function writeOne(): Promise<void> {
  const store = await createLedgerStore({ url, field: 'url', maxConnections: 2 }, systemClock)
  await store.open()
  await store.write({ source: 'a', first: 1, number: 1, entries: [ledgerEntry({ id: 'a' })], sums: [] })
  await store.close()
}

describe('createLedgerQueries', () => {
  it('reads in a thread', async () => {
    await writeOne()
    expect(await start().readRequest('a')).toMatchObject({ entry: { id: 'a' } })
  })

  it('responds again after the database appears', async () => {
    const queries = start()
    await expect(queries.readRequest('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(logged).toEqual(['ledger query failed'])
    await writeOne()
    expect(await queries.readRequest('a')).toMatchObject({ entry: { id: 'a' } })
  })

  it('refuses queries while too many wait', async () => {
    await writeOne()
    const queries = start()
    const outcomes = await Promise.allSettled(Array.from({ length: 300 }, () => queries.readRequest('a')))
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    // One runs, and 200 wait.
    expect(refused).toHaveLength(99)
    expect(refused[0]).toMatchObject({ reason: { kind: 'busy' } })
    expect(await queries.readRequest('a')).toBeDefined()
  })

  it('replaces a thread that does not respond', async () => {
    await writeOne()
    // The thread needs longer to start.
    const queries = start(0)
    await expect(queries.readRequest('a')).rejects.toMatchObject({ kind: 'late' })
    expect(logged).toEqual(['thread of ledger queries abandoned: a query does not end'])
    await expect(queries.readRequest('a')).rejects.toMatchObject({ kind: 'late' })
  })

  it('refuses waiting queries when it closes', async () => {
    await writeOne()
    const queries = start()
    const outcomes = Promise.allSettled(Array.from({ length: 5 }, () => queries.readRequest('a')))
    await queries.close()
    expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true)
  })
})
