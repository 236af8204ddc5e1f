import type { LedgerEntry } from '../entry.ts'
import type { UsageSum } from '../usage-sum.ts'

/**
 * Entries and sums to commit together: those of the spool records `first` to `number` of a source. Records
 * are written in the order of their numbers; one whose number is not above the last committed number of its
 * source was written before.
 */
export type LedgerBatch = {
  /** Identity of the writer: a UUID for each start of a process. */
  readonly source: string
  /** From 1; at most `number`. */
  readonly first: number
  /** The last committed number of the source after the write. */
  readonly number: number
  readonly entries: readonly LedgerEntry[]
  readonly sums: readonly UsageSum[]
}

/** Use of a budget over all replicas. `used` is in the unit of the budget: tokens, or picodollars. */
export type BudgetTotal = {
  readonly budget: string
  readonly value: string
  readonly windowStart: number
  readonly windowEnd: number
  readonly used: bigint
}

export type WriteResult =
  /** `totals`: the budgets that the batch charged, after it. */
  | { readonly kind: 'written'; readonly totals: readonly BudgetTotal[] }
  /** The last committed number of the source is at least `number`: nothing was written. */
  | { readonly kind: 'duplicate' }
  /**
   * The last committed number `last` of the source is at least `first` and below `number`, because a replay
   * combined other records: nothing was written. The rest is to be written without the records up to `last`.
   */
  | { readonly kind: 'partial'; readonly last: number }

/**
 * The database of the ledger, as its writer sees it. Calls reject with `DatabaseUnavailable` if the database
 * is unreachable or returns an error; `write` also rejects with `BatchRefused`. After a broken connection, a
 * write may have been committed: write the same batch again.
 */
export type LedgerStore = {
  /** Connects and migrates. Repeated after an outage. */
  open(): Promise<void>
  /** Commits a batch: rows, hourly and daily sums, use of keys and budgets, number of the batch. */
  write(batch: LedgerBatch): Promise<WriteResult>
  /** Totals of windows that end after `now` and changed since `since` (a value of an earlier call). */
  budgetTotals(since: number | undefined, now: number): Promise<{ totals: BudgetTotal[]; since: number }>
  /** Deletes at most `most` rows that completed before `before`. Resolves with the number of deleted rows. */
  pruneRequests(before: number, most: number): Promise<number>
  /** Deletes at most `most` sums, windows of budgets and batch numbers from before `before`. */
  pruneUsage(before: number, most: number): Promise<number>
  close(): Promise<void>
}
