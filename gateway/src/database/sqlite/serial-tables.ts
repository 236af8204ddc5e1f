import type { DatabaseSync } from 'node:sqlite'
import { DatabaseUnavailable } from '../database-unavailable.ts'
import type { Migrations } from '../migrations.ts'
import { createSqliteConnection } from './connection.ts'
import { describeError } from './errors.ts'

/** Tables of a SQLite file. Blocks its thread. Rejects with `DatabaseUnavailable`. */
export type SerialTables = {
  /** Runs a write transaction. One at a time; waits for the lock of other processes in between. */
  write<T>(run: (writer: DatabaseSync) => T): Promise<T>
  /** Reads the last commits. */
  read<T>(run: (reader: DatabaseSync) => T): T
  close(): void
}

export type SerialTablesOptions = {
  /** Without it, the last changes may be lost with the power: commits do not wait for the disk. */
  readonly survivesPowerLoss: boolean
}

const lockWaitMs = 2_000

/** Opens a SQLite file on first use, and again after an error. */
export function createSerialTables(
  path: string,
  migrations: Migrations,
  { survivesPowerLoss }: SerialTablesOptions,
): SerialTables {
  const connection = createSqliteConnection(path, migrations, { onReplaced() {}, beforeClose() {} })
  let last: Promise<unknown> = Promise.resolve()

  async function writeNow<T>(run: (writer: DatabaseSync) => T): Promise<T> {
    try {
      if (!survivesPowerLoss) connection.current().writer.exec('pragma synchronous = off')
      const writer = await connection.beginWrite(lockWaitMs)
      const result = run(writer)
      connection.commit()
      return result
    } catch (error) {
      rollBack()
      throw new DatabaseUnavailable(describeError(error, path), error)
    }
  }

  function rollBack(): void {
    try {
      connection.rollback()
    } catch {
      // The connection is opened again by the next call.
      connection.close()
    }
  }

  return {
    write(run) {
      const done = last.then(() => writeNow(run))
      last = done.catch(() => undefined)
      return done
    },
    read(run) {
      try {
        return run(connection.current().reader)
      } catch (error) {
        throw new DatabaseUnavailable(describeError(error, path), error)
      }
    },
    close: connection.close,
  }
}
