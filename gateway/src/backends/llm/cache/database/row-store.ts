import type { Migrations } from '../../../../database/migrations.ts'
import type { CachedRow, FoundRow } from '../../../../lib/planes/cached-rows.ts'

/** Limits of all rows. */
export type RowLimits = { readonly maxBytes: number; readonly maxEntries: number }

/** Rows of all processes, as last counted. */
export type RowTotals = { readonly entries: number; readonly bytes: number }

/** Rows of the response cache in a database. Rejects with `DatabaseUnavailable`. */
export type RowStore = {
  /** The rows of several keys, in their order. */
  read(keys: readonly string[]): Promise<readonly (FoundRow | undefined)[]>
  /** Adds or replaces rows, each with another key. */
  write(rows: readonly CachedRow[]): Promise<void>
  /**
   * Deletes expired rows, and the oldest ones beyond the limits. One process does so every few seconds;
   * `hurries` does not wait for the turn.
   */
  prune(hurries: boolean): Promise<RowTotals>
  close(): Promise<void>
}

/** Time between two turns of `prune`. */
export const turnMs = 5_000
/** Rows that one statement deletes, and such statements of a turn. */
export const mostDeleted = 500
export const mostBatches = 20

/** A row for a deletion, oldest first. */
export type OldRow = { readonly key: string; readonly size: number }

/** The keys whose deletion brings the totals below the limits, as far as `oldest` suffices. */
export function excessOf(oldest: readonly OldRow[], totals: RowTotals, limits: RowLimits): string[] {
  let { entries, bytes } = totals
  const keys: string[] = []
  for (const { key, size } of oldest) {
    if (entries <= limits.maxEntries && bytes <= limits.maxBytes) break
    entries -= 1
    bytes -= size
    keys.push(key)
  }
  return keys
}

type Types = { readonly text: string; readonly integer: string; readonly bytes: string }

// Times are milliseconds since the epoch. The index of ages has all columns of the totals.
const tables = ({ text, integer, bytes }: Types) => `create table tollgate_cached_responses (
    key ${text} primary key,
    content ${bytes} not null,
    size ${integer} not null,
    stored_at ${integer} not null,
    expires_at ${integer} not null
  );
  create index tollgate_cached_responses_age on tollgate_cached_responses (stored_at, key, size);
  create index tollgate_cached_responses_expiry on tollgate_cached_responses (expires_at);
  create table tollgate_cache_turns (
    id integer primary key,
    taken_at ${integer} not null,
    entries ${integer} not null,
    bytes ${integer} not null
  );
  insert into tollgate_cache_turns (id, taken_at, entries, bytes) values (1, 0, 0, 0);`

const table = 'tollgate_cache_migrations'
export const sqliteMigrations: Migrations = {
  table,
  steps: [tables({ text: 'text', integer: 'integer', bytes: 'blob' })],
}
export const postgresMigrations: Migrations = {
  table,
  steps: [
    `${tables({ text: 'text collate "C"', integer: 'bigint', bytes: 'bytea' })}
    alter table tollgate_cached_responses alter column content set storage external;`,
  ],
}
