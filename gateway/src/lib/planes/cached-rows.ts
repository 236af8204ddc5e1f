/** A row of the response cache in the database. */
export type CachedRow = {
  /** Digest. */
  readonly key: string
  /** Encrypted. */
  readonly content: Uint8Array
  /** Time of the machine in milliseconds since the epoch. */
  readonly storedAt: number
  readonly ttlMs: number
}

/** The content of a row that has not expired, and its age by the clock of the database. */
export type FoundRow = { readonly content: Uint8Array; readonly ageMs: number }

/** The response cache in the database, for data planes. Rejects if the database is not available. */
export type CachedRows = {
  read(key: string): Promise<FoundRow | undefined>
  write(row: CachedRow): Promise<void>
}
