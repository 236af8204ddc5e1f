import type { DatabaseSync } from 'node:sqlite'
import { createSerialTables } from '../../../database/sqlite/serial-tables.ts'
import type {
  FoundObjects,
  ObjectKey,
  ObjectQuery,
  ObjectRecord,
} from '../../../lib/planes/object-records.ts'
import {
  additionsPerPrune,
  listedMs,
  mostListed,
  mostPruned,
  type RecordStore,
  sqliteMigrations,
} from './record-store.ts'

/** Objects of clients in a SQLite file. Blocks its thread. `now` is the time of the machine. */
export function createSqliteRecords(path: string, now: () => number): RecordStore {
  const { read, write, close } = createSerialTables(path, sqliteMigrations, { survivesPowerLoss: true })
  let additions = 0

  function add(db: DatabaseSync, { owner, kind, id, text, purpose }: ObjectRecord): void {
    db.prepare(
      `insert into tollgate_llm_objects (owner, kind, id, text, purpose, created_at) values (?, ?, ?, ?, ?, ?)
      on conflict (owner, kind, id) do nothing`,
    ).run(owner, kind, id, text, purpose, now())
    additions += 1
    if (additions % additionsPerPrune === 0) prune(db, owner, kind)
  }

  function prune(db: DatabaseSync, owner: string, kind: string): void {
    db.prepare(
      `delete from tollgate_llm_objects where owner = ? and kind = ? and seq <= (select seq from tollgate_llm_objects
        where owner = ? and kind = ? order by seq desc limit 1 offset ${mostListed})`,
    ).run(owner, kind, owner, kind)
    db.prepare(
      `delete from tollgate_llm_objects where seq in (
        select seq from tollgate_llm_objects where created_at < ? limit ${mostPruned})`,
    ).run(now() - listedMs)
  }

  function find(db: DatabaseSync, { owner, kind, purpose, cursor, order, limit }: ObjectQuery): FoundObjects {
    const start =
      cursor === undefined
        ? undefined
        : db
            .prepare('select seq from tollgate_llm_objects where owner = ? and kind = ? and id = ?')
            .get(owner, kind, cursor)
    if (cursor !== undefined && start === undefined) return undefined
    const [side, direction] = order === 'newest first' ? ['<', 'desc'] : ['>', 'asc']
    const rows = db
      .prepare(
        `select text from tollgate_llm_objects where owner = ? and kind = ? and removed = 0
        and (? is null or purpose = ?) and (? is null or seq ${side} ?) order by seq ${direction} limit ?`,
      )
      .all(
        owner,
        kind,
        purpose ?? null,
        purpose ?? null,
        start?.['seq'] ?? null,
        start?.['seq'] ?? null,
        limit,
      )
    return rows.map((row) => String(row['text']))
  }

  const remove = (db: DatabaseSync, { owner, kind, id }: ObjectKey) =>
    db
      .prepare('update tollgate_llm_objects set removed = 1 where owner = ? and kind = ? and id = ?')
      .run(owner, kind, id)

  return {
    async run(request) {
      switch (request.kind) {
        case 'add':
          await write((db) => add(db, request.record))
          return undefined
        case 'remove':
          await write((db) => remove(db, request.key))
          return undefined
        case 'find':
          return read((db) => find(db, request.query))
      }
    },
    close: async () => close(),
  }
}
