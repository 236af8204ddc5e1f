import type { HistoryQuery } from './store.ts'

/** A row of the database: kind, id, JSON text, revision, creation time, update time. */
export type StoredRow = readonly [
  kind: string,
  id: string,
  text: string,
  revision: number,
  createdAt: string,
  updatedAt: string,
]

export type RowKey = readonly [kind: string, id: string]

/** Changes since a generation, or all rows. */
export type RowDelta = {
  readonly generation: number
  readonly complete: boolean
  readonly removed: readonly RowKey[]
  /** Pages small enough not to block traffic. Must be read to the end, once. */
  readonly pages: AsyncIterable<readonly StoredRow[]>
}

/** At most one change for each record. */
export type RowChanges = {
  readonly puts: readonly (readonly [kind: string, id: string, text: string])[]
  readonly removes: readonly RowKey[]
  /** ISO 8601 time of the change. */
  readonly at: string
  readonly history?: HistoryRowChanges | undefined
}

/** Rows to append to the history, and the number of rows to retain. */
export type HistoryRowChanges = { readonly rows: readonly NewHistoryRow[]; readonly retained: number }

/** A change for the history; absent texts are null. */
export type NewHistoryRow = readonly [
  kind: string,
  id: string,
  op: string,
  origin: string,
  reverts: number | null,
  principal: string | null,
  address: string,
  requestId: string,
  before: string | null,
  after: string | null,
]

/** Rows of the history, latest first. Fewer than the limit if they are large. */
export type HistoryRows = { readonly rows: readonly HistoryRow[]; readonly isLast: boolean }

/** A row of the history: number, time, and the change with the resulting revision. */
export type HistoryRow = readonly [number: number, at: string, revision: number, ...NewHistoryRow]

/** Another encoding of the same value, for one revision. */
export type RewrittenRow = readonly [kind: string, id: string, text: string, revision: number]

export type CommittedRows = {
  /** Unchanged if there was nothing to remove. */
  readonly generation: number
  /** In the order of the puts. */
  readonly puts: readonly { readonly revision: number; readonly createdAt: string }[]
  /** Removals that found a record. */
  readonly removed: readonly RowKey[]
}

/** Events of a driver. */
export type DriverEvents = {
  /** The current generation of the database; may be repeated. */
  generation(generation: number): void
  unavailable(error: Error): void
  /**
   * The database may be a different one: restored, or a server without the latest commits after a failover.
   * Deltas from earlier generations are not valid.
   */
  replaced(): void
}

/**
 * One kind of database; unaware of values, secrets and plans. Rejects with `DatabaseUnavailable`, or with the
 * error of `use`.
 */
export type RowDriver = {
  read<T>(since: number | undefined, use: (delta: RowDelta) => Promise<T>): Promise<T>
  /** Calls `use` under the write lock. Commits nothing if it rejects or returns undefined. */
  write(
    since: number | undefined,
    waitMs: number,
    use: (delta: RowDelta) => Promise<RowChanges | undefined>,
  ): Promise<CommittedRows | undefined>
  /**
   * Replaces texts without a new revision or generation, because the values are equal. Skips records that
   * have changed.
   */
  rewrite(rows: readonly RewrittenRow[], waitMs: number): Promise<void>
  history(query: HistoryQuery): Promise<HistoryRows>
  /** Starts calling `events.generation` repeatedly. */
  watch(): void
  close(): Promise<void>
}

/**
 * Maximum number of stored removals, which deltas require. A reader with an older generation reads all rows.
 */
export const maxStoredRemovals = 10_000
/** Rows per page: parsing and decrypting them takes about a millisecond. */
export const pageRows = 250
