import type { DatabaseSync } from 'node:sqlite'
import { createSerialTables } from '../../../../database/sqlite/serial-tables.ts'
import {
  excessOf,
  mostBatches,
  mostDeleted,
  type RowLimits,
  type RowStore,
  type RowTotals,
  sqliteMigrations,
  turnMs,
} from './row-store.ts'

/** The response cache in a SQLite file. Blocks its thread. `now` is the time of the machine. */
export function createSqliteRows(path: string, limits: RowLimits, now: () => number): RowStore {
  const { read, write, close } = createSerialTables(path, sqliteMigrations, { survivesPowerLoss: false })

  /** Transactions are short, so that other writers of the file wait for one batch at most. */
  async function deleteExpired(): Promise<void> {
    for (let batch = 0; batch < mostBatches; batch += 1) {
      const deleted = await write((db) =>
        db
          .prepare(
            `delete from tollgate_cached_responses where key in (
              select key from tollgate_cached_responses where expires_at <= ?
              order by expires_at limit ${mostDeleted})`,
          )
          .run(now()),
      )
      if (Number(deleted.changes) < mostDeleted) return
    }
  }

  async function deleteExcess(): Promise<RowTotals> {
    for (let batch = 0; ; batch += 1) {
      const totals = read(countRows)
      const isWithin = totals.entries <= limits.maxEntries && totals.bytes <= limits.maxBytes
      if (isWithin || batch === mostBatches) return totals
      await write((db) => {
        const oldest = db
          .prepare(
            `select key, size from tollgate_cached_responses order by stored_at, key limit ${mostDeleted}`,
          )
          .all()
          .map(({ key, size }) => ({ key: String(key), size: Number(size) }))
        const remove = db.prepare('delete from tollgate_cached_responses where key = ?')
        for (const key of excessOf(oldest, totals, limits)) remove.run(key)
      })
    }
  }

  return {
    async read(keys) {
      const nowMs = now()
      return read((db) => {
        const select = db.prepare(
          'select content, stored_at from tollgate_cached_responses where key = ? and expires_at > ?',
        )
        return keys.map((key) => {
          const { content, stored_at: storedAt } = select.get(key, nowMs) ?? {}
          if (!(content instanceof Uint8Array)) return undefined
          return { content, ageMs: Math.max(0, nowMs - Number(storedAt)) }
        })
      })
    },
    write: (rows) =>
      write((db) => {
        const put = db.prepare(
          `insert into tollgate_cached_responses (key, content, size, stored_at, expires_at)
          values (?, ?, ?, ?, ?) on conflict (key) do update set content = excluded.content,
          size = excluded.size, stored_at = excluded.stored_at, expires_at = excluded.expires_at
          where stored_at <= excluded.stored_at`,
        )
        for (const { key, content, storedAt, ttlMs } of rows)
          put.run(key, content, content.byteLength, storedAt, storedAt + ttlMs)
      }),
    async prune(hurries) {
      const turn = await write((db) =>
        db
          .prepare('update tollgate_cache_turns set taken_at = ? where taken_at <= ?')
          .run(now(), hurries ? now() : now() - turnMs),
      )
      if (Number(turn.changes) > 0) {
        await deleteExpired()
        const { entries, bytes } = await deleteExcess()
        await write((db) =>
          db.prepare('update tollgate_cache_turns set entries = ?, bytes = ?').run(entries, bytes),
        )
      }
      return read(readTotals)
    },
    close: async () => close(),
  }
}

function countRows(db: DatabaseSync): RowTotals {
  const row = db
    .prepare('select count(*) as entries, coalesce(sum(size), 0) as bytes from tollgate_cached_responses')
    .get()
  return totalsOf(row)
}

function readTotals(db: DatabaseSync): RowTotals {
  return totalsOf(db.prepare('select entries, bytes from tollgate_cache_turns').get())
}

function totalsOf(row: Readonly<Record<string, unknown>> | undefined): RowTotals {
  return { entries: Number(row?.['entries'] ?? 0), bytes: Number(row?.['bytes'] ?? 0) }
}
