import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { maxStoredRemovals, pageRows, type RowChanges } from '../row-driver.ts'
import { createSqliteSession, type SqliteSession } from './session.ts'

const at = '2026-01-01T00:00:00.000Z'
let folder: string
let path: string
let session: SqliteSession
const onReplaced = vi.fn()

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-session-'))
  path = join(folder, 'tollgate.db')
  onReplaced.mockClear()
  session = createSqliteSession(path, onReplaced)
})

afterEach(() => {
  session.close()
  rmSync(folder, { recursive: true, force: true })
})

async function write(changes: Partial<RowChanges>) {
  await session.begin(undefined, 1000)
  return session.commit({ puts: [], removes: [], at, ...changes })
}

const put = (id: string, text = '{}') => ['a', id, text] as const

it('returns the rows changed since a generation, and the removals', async () => {
  await write({ puts: [put('x'), put('y')] })
  await write({ puts: [put('x', '{"n":1}')], removes: [['a', 'y']] })
  expect(session.read(1)).toEqual({ generation: 2, complete: false, removed: [['a', 'y']] })
  expect(session.page('read')).toEqual({ rows: [['a', 'x', '{"n":1}', 2, at, at]], isLast: true })
  expect(() => session.page('read')).toThrow('there is nothing to read')
})

it.each([undefined, -1, 7])('returns all rows since %s', async (since) => {
  await write({ puts: [put('x')] })
  expect(session.read(since)).toEqual({ generation: 1, complete: true, removed: [] })
  expect(session.page('read').rows).toHaveLength(1)
})

it('limits a page by rows and by characters', async () => {
  await write({ puts: Array.from({ length: pageRows + 1 }, (_, index) => put(`${index}`)) })
  session.read(undefined)
  expect(session.page('read')).toMatchObject({ rows: { length: pageRows }, isLast: false })
  expect(session.page('read')).toMatchObject({ rows: { length: 1 }, isLast: true })
  await write({ puts: Array.from({ length: 3 }, (_, index) => put(`b${index}`, 'x'.repeat(200_000))) })
  session.read(1)
  expect(session.page('read')).toMatchObject({ rows: { length: 2 }, isLast: false })
})

it('reads the snapshot of its start during later commits', async () => {
  await write({ puts: [put('x')] })
  session.read(undefined)
  await write({ puts: [put('y')] })
  expect(session.page('read').rows).toHaveLength(1)
})

it('starts revisions after the last one of a removed row', async () => {
  await write({ puts: [put('x')] })
  await write({ puts: [put('x')] })
  await write({ removes: [['a', 'x']] })
  expect(await write({ puts: [put('x')] })).toEqual({
    generation: 4,
    puts: [{ revision: 3, createdAt: at }],
    removed: [],
  })
})

it('does not increase the generation if nothing changed', async () => {
  expect(await write({ removes: [['a', 'none']] })).toEqual({ generation: 0, puts: [], removed: [] })
  expect(session.generation()).toBe(0)
})

it('stores a limited number of removals and requires a full read before the oldest', async () => {
  const ids = Array.from({ length: maxStoredRemovals }, (_, index) => `${index}`)
  await write({ puts: [put('x'), ...ids.map((id) => put(id))] })
  await write({ removes: [['a', 'x']] })
  await write({ removes: ids.map((id) => ['a', id] as const) })
  expect(session.read(1).complete).toBe(true)
  expect(session.read(2)).toMatchObject({ complete: false, removed: { length: maxStoredRemovals } })
})

it('rewrites rows of the expected revision only, in the same generation', async () => {
  await write({ puts: [put('x'), put('y')] })
  await write({ puts: [put('y')] })
  await session.rewrite(
    [
      ['a', 'x', '"new"', 1],
      ['a', 'y', '"new"', 1],
    ],
    1000,
  )
  expect(session.read(undefined).generation).toBe(2)
  expect(session.page('read').rows.map(([, id, text]) => [id, text])).toEqual([
    ['x', '"new"'],
    ['y', '{}'],
  ])
})

it('discards the changes of a rollback, and reports no generation during a write', async () => {
  await session.begin(undefined, 1000)
  expect(session.generation()).toBeUndefined()
  session.rollback()
  expect(session.generation()).toBe(0)
})

it('rejects a commit without a write transaction, and stores nothing', async () => {
  await session.begin(undefined, 1000)
  session.close()
  expect(() => session.commit({ puts: [put('x')], removes: [], at })).toThrow('transaction has ended')
  expect(session.read(undefined)).toMatchObject({ generation: 0 })
  expect(session.page('read').rows).toEqual([])
})

it('rejects a write while another process has the lock, and retries until the limit', async () => {
  const other = createSqliteSession(path, onReplaced)
  await other.begin(undefined, 1000)
  await expect(session.begin(undefined, 20)).rejects.toThrow('database is locked')
  const waiting = session.begin(undefined, 5000)
  other.rollback()
  expect(await waiting).toMatchObject({ generation: 0 })
  session.rollback()
  other.close()
})

it('returns all rows after the file was replaced', async () => {
  await write({ puts: [put('x')] })
  session.close()
  copyFileSync(path, join(folder, 'backup.db'))
  await write({ puts: [put('y')] })
  renameSync(join(folder, 'backup.db'), path)
  expect(session.read(1)).toEqual({ generation: 1, complete: true, removed: [] })
  expect(onReplaced).toHaveBeenCalledOnce()
  expect(session.read(1).complete).toBe(false)
})

it('does not commit to a file that was replaced during the write', async () => {
  await write({ puts: [put('x')] })
  session.close()
  copyFileSync(path, join(folder, 'backup.db'))
  await session.begin(undefined, 1000)
  renameSync(join(folder, 'backup.db'), path)
  expect(() => session.commit({ puts: [put('y')], removes: [], at })).toThrow('another file has been put')
})
