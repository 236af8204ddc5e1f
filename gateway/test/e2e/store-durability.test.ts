import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { sqliteMigrations } from '../../src/resources/stores/migrations.ts'
import { runSqliteThread, type SqliteRequest } from '../../src/resources/stores/sqlite/thread.ts'
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

/** Reports the level of synchronisation of the connection at each commit: 2 is `full`. */
const spySource = `
  const original = process.getBuiltinModule
  const { parentPort } = original('node:worker_threads')
  class Spy extends original('node:sqlite').DatabaseSync {
    exec(text) {
      if (text === 'commit') parentPort.postMessage({ kind: 'level', level: this.prepare('pragma synchronous').get().synchronous })
      super.exec(text)
    }
  }
  process.getBuiltinModule = (name) => name === 'node:sqlite' ? { DatabaseSync: Spy } : original(name)
`

it('SQLite commits with full synchronisation', async () => {
  const workerData = {
    path: join(newFolder(), 'tollgate.db'),
    migrations: sqliteMigrations,
    pollMs: 60_000,
    pageRows: 10,
    keptRemovals: 10,
  }
  const worker = new Worker(`${spySource}; (${runSqliteThread.toString()})()`, { eval: true, workerData })
  endAfter('test', async () => void (await worker.terminate()))
  const levels: number[] = []
  worker.on('message', (message) => message.kind === 'level' && levels.push(message.level))
  const requests: SqliteRequest[] = [
    { op: 'begin', since: undefined, waitMs: 1000 },
    { op: 'commit', changes: { puts: [['a', 'x', '{}']], removes: [], at: '2026-01-01T00:00:00.000Z' } },
  ]
  for (const [id, request] of requests.entries()) {
    worker.postMessage({ id, request })
    for (;;) {
      const [answer] = await once(worker, 'message')
      if (answer.id === id) {
        expect(answer).toMatchObject({ kind: 'done' })
        break
      }
    }
  }
  expect(levels).not.toEqual([])
  expect(new Set(levels)).toEqual(new Set([2]))
})
