import { chmodSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { DatabaseUnavailable } from '../../src/database/database-unavailable.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createSqliteStore } from '../../src/resources/stores/sqlite/sqlite.ts'
import { endAfter } from '../support/cleanup.ts'
import { commit, describeStore, put, type StoreDatabase, secretPaths } from '../support/store-suite.ts'
import { until } from '../support/wait.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function openStore(path: string, pollMs?: number) {
  const options = { path, secretPaths, clock: systemClock }
  const store = createSqliteStore(pollMs === undefined ? options : { ...options, pollMs })
  endAfter('test', () => store.close())
  return store
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

async function createDatabase(): Promise<StoreDatabase> {
  const path = join(newFolder(), 'new', 'folder', 'tollgate.db')
  return {
    open: (options = {}) => createSqliteStore({ path, secretPaths, clock: systemClock, ...options }),
    sql(text) {
      const database = new DatabaseSync(path, { timeout: 5000 })
      try {
        if (!/^select/i.test(text)) {
          database.exec(text)
          return Promise.resolve([])
        }
        return Promise.resolve(
          database
            .prepare(text)
            .all()
            .map((row) => Object.values(row)),
        )
      } finally {
        database.close()
      }
    },
    address: ['sqlite', path],
  }
}

describeStore('SQLite', createDatabase)

describe('a SQLite file', () => {
  it('is created for this user only, with its companion files', async () => {
    const path = join(newFolder(), 'a', 'b', 'tollgate.db')
    const store = openStore(path)
    await commit(store, put('a', 'x', {}))
    expect([path, `${path}-wal`, `${path}-shm`].map(modeOf)).toEqual([0o600, 0o600, 0o600])
    expect(modeOf(join(path, '..'))).toBe(0o700)
  })

  it('is closed to others where it was open to them', async () => {
    const path = join(newFolder(), 'tollgate.db')
    writeFileSync(path, '')
    chmodSync(path, 0o666)
    await commit(openStore(path), put('a', 'x', {}))
    expect(modeOf(path)).toBe(0o600)
  })

  it.each([':memory:', '', 'a\0b'])('must be a file: %j is refused', (path) => {
    expect(() => openStore(path)).toThrow('config.database.url must name a file')
  })

  it('is not touched when it is something else', async () => {
    const path = join(newFolder(), 'notes.txt')
    const notes = 'this is not a database, and more than a hundred bytes of it. '.repeat(50)
    writeFileSync(path, notes)
    await expect(openStore(path).read(undefined)).rejects.toThrow(
      `the SQLite database ${path} cannot be used: it is not a SQLite database`,
    )
    expect(statSync(path).size).toBe(notes.length)
  })

  it('cannot be a folder, nor be where nothing can be created', async () => {
    await expect(openStore(newFolder()).read(undefined)).rejects.toThrow(DatabaseUnavailable)
    await expect(openStore('/proc/tollgate/tollgate.db').read(undefined)).rejects.toThrow(DatabaseUnavailable)
  })

  it('is reported when damaged', async () => {
    const path = join(newFolder(), 'tollgate.db')
    const first = createSqliteStore({ path, secretPaths, clock: systemClock })
    await commit(first, ...Array.from({ length: 500 }, (_, index) => put('a', `${index}`, { index })))
    await first.close()
    truncateSync(path, 8192)
    await expect(openStore(path).read(undefined)).rejects.toThrow(/damaged: restore it from a backup/)
  })

  it('works after the obstacle is gone', async () => {
    const path = join(newFolder(), 'tollgate.db')
    writeFileSync(path, 'not a database '.repeat(100))
    const store = openStore(path)
    await expect(store.read(undefined)).rejects.toThrow(DatabaseUnavailable)
    rmSync(path)
    expect((await commit(store, put('a', 'x', {}))).generation).toBe(1)
  })

  it('is read anew when another file takes its place', async () => {
    const folder = newFolder()
    const path = join(folder, 'tollgate.db')
    const backup = join(folder, 'backup.db')
    const restored = createSqliteStore({ path: backup, secretPaths, clock: systemClock })
    for (const id of ['a', 'b', 'c']) await commit(restored, put('restored', id, {}))
    await restored.close()
    const store = openStore(path, 50)
    await commit(store, put('old', 'x', {}))
    let changes = 0
    store.watch({ onChange: () => (changes += 1), onLost: () => undefined })
    renameSync(backup, path)
    await until('the new file is noticed', () => changes > 0)
    const delta = await store.read(1)
    expect(delta.complete).toBe(true)
    expect(delta.changed.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c'])
    expect((await store.read(3)).generation).toBe(3)
    expect((await commit(store, put('new', 'y', {}))).generation).toBe(4)
  })

  it('is not created anew when it goes away while in use', async () => {
    const path = join(newFolder(), 'tollgate.db')
    const store = openStore(path, 50)
    await commit(store, put('a', 'x', {}))
    const lost: string[] = []
    let changes = 0
    store.watch({ onChange: () => (changes += 1), onLost: (error) => lost.push(error.message) })
    renameSync(path, `${path}.away`)
    await until('the loss is told', () => lost.length > 0)
    await expect(store.read(1)).rejects.toThrow(/ENOENT/)
    await expect(commit(store, put('a', 'y', {}))).rejects.toThrow(DatabaseUnavailable)
    await delay(200)
    expect(lost).toHaveLength(1)
    changes = 0
    renameSync(`${path}.away`, path)
    await until('its return is told', () => changes > 0)
    expect((await store.read(1)).generation).toBe(1)
  })

  it('that another process has locked is waited for, without blocking readers', async () => {
    const path = join(newFolder(), 'tollgate.db')
    const store = openStore(path)
    await commit(store, put('a', 'x', {}))
    const other = new DatabaseSync(path)
    other.exec('begin immediate')
    let isDone = false
    const writing = commit(store, put('a', 'y', {})).finally(() => {
      isDone = true
    })
    await delay(100)
    expect((await store.read(0)).changed).toHaveLength(1)
    expect(isDone).toBe(false)
    other.exec('commit')
    other.close()
    expect((await writing).generation).toBe(2)
  })
})
