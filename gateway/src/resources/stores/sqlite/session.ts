import { createSqliteConnection } from '../../../database/sqlite/connection.ts'
import { sqliteMigrations } from '../migrations.ts'
import type { CommittedRows, HistoryRows, RewrittenRow, RowChanges } from '../row-driver.ts'
import type { HistoryQuery } from '../store.ts'
import { rewriteRows, writeChanges } from './commit.ts'
import type { SqliteHead, SqlitePage, SqliteTransaction } from './protocol.ts'
import { readGeneration, readHistory, readPage, selectRows } from './read.ts'

/** Requests to one database file, in any order: at most one read and one write transaction. */
export type SqliteSession = {
  /** Starts a snapshot; replaces the previous one. */
  read(since: number | undefined): SqliteHead
  /** Starts the write transaction. */
  begin(since: number | undefined, waitMs: number): Promise<SqliteHead>
  page(transaction: SqliteTransaction): SqlitePage
  commit(changes: RowChanges): CommittedRows
  rollback(): void
  rewrite(rows: readonly RewrittenRow[], waitMs: number): Promise<void>
  history(query: HistoryQuery): HistoryRows
  /** The current generation; undefined during a write transaction, which reads the changes itself. */
  generation(): number | undefined
  close(): void
}

type Cursor = { readonly rows: Iterator<unknown>; end(): void }

export function createSqliteSession(path: string, onReplaced: () => void): SqliteSession {
  const cursors: { [transaction in SqliteTransaction]?: Cursor | undefined } = {}
  let needsFullRead = false

  const endCursor = (transaction: SqliteTransaction): void => {
    const cursor = cursors[transaction]
    cursors[transaction] = undefined
    cursor?.rows.return?.()
    cursor?.end()
  }
  const connection = createSqliteConnection(path, sqliteMigrations, {
    beforeClose: () =>
      endQuietly(
        () => endCursor('read'),
        () => endCursor('write'),
      ),
    onReplaced() {
      needsFullRead = true
      onReplaced()
    },
  })
  const select = (...[db, since]: Parameters<typeof selectRows>) => {
    const selection = selectRows(db, needsFullRead ? undefined : since)
    needsFullRead = false
    return selection
  }
  const rollback = (): void => {
    endCursor('write')
    connection.rollback()
  }
  /** Rolls back if `run` throws. */
  const inWrite = <T>(run: () => T): T => {
    try {
      return run()
    } catch (error) {
      rollback()
      throw error
    }
  }

  return {
    read(since) {
      const { reader } = connection.current()
      endCursor('read')
      reader.exec('begin')
      try {
        const { head, rows } = select(reader, since)
        cursors.read = { rows, end: () => reader.exec('rollback') }
        return head
      } catch (error) {
        reader.exec('rollback')
        throw error
      }
    },
    async begin(since, waitMs) {
      const writer = await connection.beginWrite(waitMs)
      return inWrite(() => {
        const { head, rows } = select(writer, since)
        cursors.write = { rows, end: () => undefined }
        return head
      })
    },
    page(transaction) {
      const cursor = cursors[transaction]
      if (cursor === undefined) throw new Error('there is nothing to read')
      try {
        const page = readPage(cursor.rows)
        if (page.isLast) endCursor(transaction)
        return page
      } catch (error) {
        endCursor(transaction)
        throw error
      }
    },
    commit: (changes) =>
      inWrite(() => {
        // A thread that restarted during the write has no transaction: each statement would commit
        // separately.
        if (!connection.isWriting()) throw new Error('the write transaction has ended')
        const committed = writeChanges(connection.current().writer, changes)
        if (committed.puts.length === 0 && committed.removed.length === 0) rollback()
        else connection.commit()
        return committed
      }),
    rollback,
    async rewrite(rows, waitMs) {
      const writer = await connection.beginWrite(waitMs)
      inWrite(() => {
        rewriteRows(writer, rows)
        connection.commit()
      })
    },
    history: (query) => readHistory(connection.current().reader, query),
    generation: () => (connection.isWriting() ? undefined : readGeneration(connection.current().writer)),
    close: connection.close,
  }
}

/** Errors are ignored: closing the connection ends cursors as well. */
function endQuietly(...steps: readonly (() => void)[]): void {
  for (const step of steps) {
    try {
      step()
    } catch {}
  }
}
