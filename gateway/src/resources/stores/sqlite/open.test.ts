import { existsSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { sqliteMigrations } from '../migrations.ts'
import { identifyFile } from './files.ts'
import { openDatabase, readGeneration, removeLogs } from './open.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-open-'))
  path = join(folder, 'a', 'b', 'tollgate.db')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function open() {
  const database = openDatabase(path)
  return {
    ...database,
    close() {
      database.reader.close()
      database.writer.close()
    },
  }
}

it('creates folder, file and schema for the current user', () => {
  const { reader, identity, close } = open()
  expect(readGeneration(reader)).toBe(0)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
  expect(identity).toBe(identifyFile(path))
  close()
})

it('applies each migration once', () => {
  open().close()
  const { reader, close } = open()
  const versions = reader.prepare('select version from tollgate_migrations order by version').all()
  expect(versions.map(({ version }) => version)).toEqual(sqliteMigrations.map((_, index) => index + 1))
  close()
})

it('rejects the schema of a newer version', () => {
  const { writer, close } = open()
  writer.exec("insert into tollgate_migrations values (99, '')")
  close()
  expect(open).toThrow('its schema has version 99')
})

it('rejects a file that is not a database', () => {
  path = join(folder, 'notes.txt')
  writeFileSync(path, 'not a database '.repeat(100))
  expect(open).toThrow('file is not a database')
})

it('does not wait for the writer in the reader', () => {
  const { reader, writer, close } = open()
  writer.exec('begin immediate; update tollgate_state set generation = 1')
  expect(readGeneration(reader)).toBe(0)
  writer.exec('commit')
  expect(readGeneration(reader)).toBe(1)
  close()
})

it('removes the logs of a replaced file, not those of its successor', () => {
  const { close, ...database } = open()
  expect([...database.logs.keys()]).toEqual([`${path}-wal`, `${path}-shm`])
  // As after a crash: the logs remain.
  writeFileSync(join(folder, 'kept'), '')
  renameSync(join(folder, 'kept'), `${path}-shm`)
  removeLogs(database)
  expect([`${path}-wal`, `${path}-shm`].map((file) => existsSync(file))).toEqual([false, true])
  close()
})
