import { existsSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Migrations, tooNew } from '../migrations.ts'
import { isBusy } from './errors.ts'
import { createPrivateFile, identifyFile, logFiles } from './files.ts'

/** Connections to one file. The writer has the lock while a plan is made; reads do not wait for it. */
export type OpenDatabase = {
  readonly writer: DatabaseSync
  readonly reader: DatabaseSync
  readonly identity: string
  /** Identities of the log files, by path. */
  readonly logs: ReadonlyMap<string, string>
}

const readerTimeoutMs = 5000
const defaultOpenWaitMs = 5000

/**
 * Opens a database; creates it, its folder and its schema if they do not exist. Blocks for at most `waitMs`
 * while other processes have exclusive access.
 */
export function openDatabase(path: string, migrations: Migrations, waitMs = defaultOpenWaitMs): OpenDatabase {
  createPrivateFile(path)
  const opened: DatabaseSync[] = []
  const connect = (options: { readOnly: boolean; timeout: number }): DatabaseSync => {
    const db = new DatabaseSync(path, options)
    opened.push(db)
    return db
  }
  try {
    const writer = connect({ readOnly: false, timeout: 0 })
    retryWhileBusy(waitMs, () => prepare(writer, migrations))
    const reader = connect({ readOnly: true, timeout: readerTimeoutMs })
    // The first read creates the log files.
    reader.prepare('select 1 from sqlite_master limit 1').get()
    const logs = logFiles(path).filter((file) => existsSync(file))
    return {
      writer,
      reader,
      identity: identifyFile(path),
      logs: new Map(logs.map((file) => [file, identifyFile(file)])),
    }
  } catch (error) {
    for (const db of opened) db.close()
    throw error
  }
}

/** Removes the log files of a replaced database: SQLite would apply them to the new file. */
export function removeLogs({ logs }: OpenDatabase): void {
  for (const [file, identity] of logs) {
    if (existsSync(file) && identifyFile(file) === identity) rmSync(file)
  }
}

function prepare(writer: DatabaseSync, migrations: Migrations): void {
  // Deleted content is overwritten: it may be a secret.
  writer.exec('pragma journal_mode = wal; pragma secure_delete = on')
  // Commits are on disk before they are acknowledged: a power failure must not restore a deleted key. With
  // `normal`, only checkpoints synchronise the log. `fullfsync` makes macOS flush the cache of the drive.
  writer.exec('pragma synchronous = full; pragma fullfsync = on')
  writer.exec('pragma journal_size_limit = 67108864')
  if (schemaVersion(writer, migrations.table) !== migrations.steps.length) migrate(writer, migrations)
}

function migrate(writer: DatabaseSync, migrations: Migrations): void {
  const { table, steps } = migrations
  writer.exec('begin immediate')
  try {
    writer.exec(
      `create table if not exists ${table} (version integer primary key, applied_at text not null) strict`,
    )
    const from = schemaVersion(writer, table)
    const refusal = tooNew(from, migrations)
    if (refusal !== undefined) throw new Error(refusal)
    const insert = writer.prepare(`insert into ${table} (version, applied_at) values (?, ?)`)
    for (const [index, sql] of steps.entries()) {
      if (index < from) continue
      writer.exec(sql)
      insert.run(index + 1, new Date().toISOString())
    }
    writer.exec('commit')
  } catch (error) {
    if (writer.isTransaction) writer.exec('rollback')
    throw error
  }
}

function schemaVersion(db: DatabaseSync, table: string): number {
  const found = db.prepare('select 1 from sqlite_master where name = ?').get(table)
  if (found === undefined) return 0
  return Number(db.prepare(`select max(version) as version from ${table}`).get()?.['version'] ?? 0)
}

/** Processes that start at the same time need exclusive access for a moment. */
function retryWhileBusy(waitMs: number, run: () => void): void {
  const deadline = performance.now() + waitMs
  for (;;) {
    try {
      run()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + 20 * Math.random())
    }
  }
}
