import { existsSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Migrations } from '../migrations.ts'
import { identifyFile } from './files.ts'
import { openDatabase, removeLogs } from './open.ts'

const migrations: Migrations = {
  table: 'versions',
  steps: [
    'create table counter (n integer); insert into counter values (0)',
    'create table other (n integer)',
  ],
}
let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-open-'))
  path = join(folder, 'a', 'b', 'tollgate.db')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function readCounter(db: DatabaseSync): unknown {
  return db.prepare('select n from counter').get()?.['n']
}

function open() {
  const database = openDatabase(path, migrations)
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
  expect(readCounter(reader)).toBe(0)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
  expect(identity).toBe(identifyFile(path))
  close()
})

it('applies each migration once', () => {
  open().close()
  const { reader, close } = open()
  const versions = reader.prepare('select version from versions order by version').all()
  expect(versions.map(({ version }) => version)).toEqual([1, 2])
  close()
})

it('rejects the schema of a newer version', () => {
  const { writer, close } = open()
  writer.exec("insert into versions values (99, '')")
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
  writer.exec('begin immediate; update counter set n = 1')
  expect(readCounter(reader)).toBe(0)
  writer.exec('commit')
  expect(readCounter(reader)).toBe(1)
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
