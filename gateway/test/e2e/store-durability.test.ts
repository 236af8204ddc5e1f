import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, vi } from 'vitest'
import { createSqliteSession } from '../../src/resources/stores/sqlite/session.ts'
import { endAfter } from '../support/cleanup.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-durability-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const stracePresent = spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0

/** Commits records one by one in a process of its own. */
const writerSource = `
  const { createSqliteStore } = await import(process.argv[1])
  const clock = { now: Date.now, monotonic: () => performance.now() }
  const store = createSqliteStore({ path: process.argv[2], clock, secretPaths: () => () => [] })
  await store.read(undefined)
  for (let index = 0; index < Number(process.argv[3]); index += 1)
    await store.write(0, async () => [{ op: 'put', kind: 'a', id: String(index), value: {} }])
  await store.close()
`

it.skipIf(!stracePresent)('SQLite synchronises the disk for every acknowledged write', () => {
  const folder = newFolder()
  const store = new URL('../../src/resources/stores/sqlite/sqlite.ts', import.meta.url).href
  const syncsOf = (writes: number): number => {
    const trace = join(folder, `trace-${writes}`)
    const node = [process.execPath, '--input-type=module', '-e', writerSource]
    const script = [...node, store, join(folder, `${writes}.db`), String(writes)]
    const options = ['-f', '-qq', '-e', 'trace=fsync,fdatasync', '-e', 'status=successful', '-o', trace]
    const run = spawnSync('strace', [...options, ...script], { encoding: 'utf8', timeout: 25_000 })
    expect(run.stderr).toBe('')
    return readFileSync(trace, 'utf8').trimEnd().split('\n').length
  }
  expect(syncsOf(31) - syncsOf(1)).toBeGreaterThanOrEqual(30)
})

it('SQLite commits with full synchronisation', async () => {
  const levels: unknown[] = []
  const { exec } = DatabaseSync.prototype
  vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, text) {
    // 2 is `full`.
    if (text === 'commit') levels.push(this.prepare('pragma synchronous').get()?.['synchronous'])
    exec.call(this, text)
  })
  endAfter('test', () => void vi.restoreAllMocks())
  const session = createSqliteSession(join(newFolder(), 'tollgate.db'), () => undefined)
  endAfter('test', session.close)
  await session.begin(undefined, 1000)
  const committed = session.commit({ puts: [['a', 'x', '{}']], removes: [], at: '2026-01-01T00:00:00.000Z' })
  expect(committed).toMatchObject({ generation: 1 })
  expect(levels).not.toEqual([])
  expect(new Set(levels)).toEqual(new Set([2]))
})
