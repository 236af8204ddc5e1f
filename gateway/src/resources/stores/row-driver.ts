/** A row as the database holds it: kind, id, JSON text, revision, created, updated. */
export type StoredRow = readonly [
  kind: string,
  id: string,
  text: string,
  revision: number,
  createdAt: string,
  updatedAt: string,
]

export type RowKey = readonly [kind: string, id: string]

/** What changed since a generation, or everything. */
export type RowDelta = {
  readonly generation: number
  readonly complete: boolean
  readonly removed: readonly RowKey[]
  /** In pages small enough that handling one does not hold up traffic. To be read to the end, once. */
  readonly pages: AsyncIterable<readonly StoredRow[]>
}

/** At most one change for each record. */
export type RowChanges = {
  readonly puts: readonly (readonly [kind: string, id: string, text: string])[]
  readonly removes: readonly RowKey[]
  /** ISO 8601 time of the change. */
  readonly at: string
}

/** Another text of the same value, for the revision that it was made of. */
export type RewrittenRow = readonly [kind: string, id: string, text: string, revision: number]

export type CommittedRows = {
  /** The same as before where there was nothing to remove. */
  readonly generation: number
  /** In the order of the puts. */
  readonly puts: readonly { readonly revision: number; readonly createdAt: string }[]
  /** Those that were there. */
  readonly removed: readonly RowKey[]
}

/** What a driver tells unasked. */
export type DriverEvents = {
  /** The database is at this generation. Whoever knows it already does nothing. */
  generation(generation: number): void
  unavailable(error: Error): void
  /**
   * The database may no longer be the one known so far: restored, or failed over to a server that lacks the latest commits.
   * Deltas from what is known cannot be trusted.
   */
  replaced(): void
}

/** One kind of database, below values, secrets and plans. Rejects with `StoreUnavailable`, and with what `use` rejects with. */
export type RowDriver = {
  read<T>(since: number | undefined, use: (delta: RowDelta) => Promise<T>): Promise<T>
  /** Holds the write lock while `use` decides. Nothing is committed when it rejects or returns undefined. */
  write(
    since: number | undefined,
    waitMs: number,
    use: (delta: RowDelta) => Promise<RowChanges | undefined>,
  ): Promise<CommittedRows | undefined>
  /** Replaces texts without a new revision or generation, because the values stay. Skips records that have changed. */
  rewrite(rows: readonly RewrittenRow[], waitMs: number): Promise<void>
  /** Keeps calling `events.at` with the generation from now on. */
  watch(): void
  close(): Promise<void>
}

/** Removals kept, so that deltas can name what is gone. A reader that is further behind reads everything. */
export const maxStoredRemovals = 10_000
/** Rows in a page: parsing and decrypting that many takes about a millisecond. */
export const pageRows = 250
