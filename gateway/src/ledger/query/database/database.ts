import type { Sql } from './sql.ts'

/** Read-only access to the database of the ledger. */
export type QueryDatabase = {
  readonly dialect: Dialect
  /**
   * Runs a query of several statements within `queryTimeoutMs`. Rejects with `QueryLate` or
   * `DatabaseUnavailable`.
   */
  use<T>(run: (select: Select) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Executes a statement. Integers above 2^53 are exact with `exact`, which returns bigints or texts. */
export type Select = (statement: Sql, options?: { readonly exact: boolean }) => Promise<Rows>

type Rows = readonly (readonly unknown[])[]

/** Differences in the SQL of the databases. */
export type Dialect = {
  /** Whether `needle`, a placeholder, is part of a column; both in lower case. */
  contains(column: string): string
  /** Condition for statements that read many rows: true, or an error if the time of the query is over. */
  readonly inTime: string
  /** Whether parts of an ordered union must be ordered themselves to be merged without reading all rows. */
  readonly ordersParts: boolean
}

/** A query was ended after `queryTimeoutMs`. */
export class QueryLate extends Error {
  constructor() {
    super('the query takes too long: use a shorter time range or more filters')
    this.name = 'QueryLate'
  }
}

export const queryTimeoutMs = 10_000

/** Converts ASCII letters to lower case, as `lower` of both databases does for these columns. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
