import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Migrations } from '../migrations.ts'
import { isBusy } from './errors.ts'
import { identifyFile } from './files.ts'
import { type OpenDatabase, openDatabase, removeLogs } from './open.ts'

/**
 * A database file with at most one write transaction. Opens on first use, and again after the file was
 * replaced.
 */
export type SqliteConnection = {
  current(): OpenDatabase
  /** Begins the write transaction. Retries while other processes have the lock, then rejects. */
  beginWrite(waitMs: number): Promise<DatabaseSync>
  isWriting(): boolean
  /** Commits the write transaction. Throws if the file was replaced meanwhile. */
  commit(): void
  /** Rolls the write transaction back, if there is one. */
  rollback(): void
  close(): void
}

export type SqliteConnectionSettings = {
  /** Another file is at the path: deltas from an earlier generation are not valid. */
  onReplaced(): void
  beforeClose(): void
  /** Limit of a blocking wait for exclusive access of other processes, in milliseconds. */
  readonly openWaitMs?: number
}

export function createSqliteConnection(
  path: string,
  migrations: Migrations,
  settings: SqliteConnectionSettings,
): SqliteConnection {
  let open: OpenDatabase | undefined
  let isWriting = false

  function close(): void {
    settings.beforeClose()
    isWriting = false
    const { reader, writer } = open ?? {}
    open = undefined
    reader?.close()
    writer?.close()
  }

  function current(): OpenDatabase {
    if (open !== undefined && !isWriting && identifyFile(path) !== open.identity) {
      const replaced = open
      close()
      removeLogs(replaced)
      settings.onReplaced()
    }
    open ??= openDatabase(path, migrations, settings.openWaitMs)
    return open
  }

  return {
    current,
    async beginWrite(waitMs) {
      const deadline = performance.now() + waitMs
      for (;;) {
        try {
          const { writer } = current()
          writer.exec('begin immediate')
          isWriting = true
          return writer
        } catch (error) {
          // Waiting inside SQLite would block readers of this process.
          if (!isBusy(error) || performance.now() > deadline) throw error
          await delay(2 + 8 * Math.random())
        }
      }
    },
    isWriting: () => isWriting,
    commit() {
      const { writer, identity } = current()
      if (identifyFile(path) !== identity) throw new Error('another file has been put in its place')
      writer.exec('commit')
      isWriting = false
    },
    rollback() {
      isWriting = false
      if (open?.writer.isTransaction) open.writer.exec('rollback')
    },
    close,
  }
}
