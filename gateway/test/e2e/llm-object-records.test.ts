import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createRecordDatabase } from '../../src/backends/llm/lists/record-database.ts'
import type { ObjectQuery, ObjectRecord } from '../../src/lib/planes/object-records.ts'
import { endAfter } from '../support/cleanup.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'

const record = (id: string, more: Partial<ObjectRecord> = {}): ObjectRecord => ({
  ...{ owner: 'alice', kind: 'files', id, text: `text of ${id}`, purpose: '' },
  ...more,
})

const page = (more: Partial<ObjectQuery> = {}): ObjectQuery => ({
  ...{
    owner: 'alice',
    kind: 'files',
    purpose: undefined,
    cursor: undefined,
    order: 'newest first',
    limit: 10,
  },
  ...more,
})

async function sqliteAddress(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-objects-'))
  endAfter('file', () => rmSync(folder, { recursive: true, force: true }))
  return `sqlite://${join(folder, 'new.db')}`
}

const databases = [
  { name: 'SQLite', missing: undefined, address: sqliteAddress },
  {
    name: 'Postgres',
    missing: postgresMissing,
    address: async () => (await startPostgres()).createDatabase(),
  },
]

describe.each(databases)('the record of objects in $name', ({ missing, address }) => {
  it.skipIf(missing !== undefined)('has pages in both orders by client, kind and purpose', async () => {
    const url = await address()
    const { call, close } = createRecordDatabase(url)
    const find = async (more?: Partial<ObjectQuery>) =>
      (await call({ kind: 'find', query: page(more) }))?.map((text) => text.slice('text of '.length))
    for (const id of ['a', 'b', 'c', 'd']) await call({ kind: 'add', record: record(id) })
    await call({ kind: 'add', record: record('e', { purpose: 'vision' }) })
    await call({ kind: 'add', record: record('a', { owner: 'bob' }) })
    await call({ kind: 'add', record: record('a', { kind: 'batches' }) })
    // An object is recorded once.
    await call({ kind: 'add', record: record('a') })
    expect(await find()).toEqual(['e', 'd', 'c', 'b', 'a'])
    expect(await find({ limit: 2, cursor: 'd' })).toEqual(['c', 'b'])
    expect(await find({ order: 'oldest first', cursor: 'b', limit: 2 })).toEqual(['c', 'd'])
    expect(await find({ purpose: 'vision' })).toEqual(['e'])
    expect(await find({ owner: 'bob' })).toEqual(['a'])
    expect(await find({ owner: 'carol' })).toEqual([])
    expect(await find({ owner: 'bob', cursor: 'd' })).toBeUndefined()
    await call({ kind: 'remove', key: { owner: 'alice', kind: 'files', id: 'd' } })
    expect(await find({ cursor: 'd' })).toEqual(['c', 'b', 'a'])
    expect(await find({ limit: 2 })).toEqual(['e', 'c'])
    await close()

    const other = createRecordDatabase(url)
    expect(await other.call({ kind: 'find', query: page({ limit: 1 }) })).toEqual(['text of e'])
    const many = Array.from({ length: 250 }, (_, index) => record(`${index}`, { owner: 'dave' }))
    for (const one of many) await other.call({ kind: 'add', record: one })
    expect(await other.call({ kind: 'find', query: page({ owner: 'dave', limit: 300 }) })).toHaveLength(250)
    await other.close()
  })
})

it('rejects calls without a database', async () => {
  const { call, close } = createRecordDatabase(undefined)
  await expect(call({ kind: 'find', query: page() })).rejects.toThrow('config.database.url')
  await close()
})
