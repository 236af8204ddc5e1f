import type { LedgerSettings } from '../config.ts'
import type { BudgetCharge } from '../entry.ts'
import type { BudgetTotal } from '../store/store.ts'

/** Start data of the thread of the writer. */
export type WriterStart = {
  readonly settings: LedgerSettings
  /** Identity of this process: a UUID for each start. */
  readonly source: string
  readonly spool: SpoolPlace
}

/** Folder of spool files. Files of one database have one prefix: a folder may serve several databases. */
export type SpoolPlace = { readonly folder: string; readonly prefix: string }

/** Use of budgets, as confirmed by the database. */
export type BudgetUpdate = {
  /** Current totals over all replicas: of all budgets that changed since the previous update, or more. */
  readonly totals: readonly BudgetTotal[]
  /** Charges of this process that this update adds to the totals, by budget, value and window. */
  readonly confirmed: readonly BudgetCharge[]
}

/** State of the writer for metrics and the admin API. */
export type WriterStatus = {
  readonly connected: boolean
  /** Error of the database; undefined if it responds. */
  readonly lastError: string | undefined
  /** Rows and sums that the database has not confirmed, those of earlier processes included. */
  readonly queuedRows: number
  readonly spoolBytes: number
  /** Error of the spool folder: entries are in memory only. */
  readonly spoolError: string | undefined
  /** Counts since the start of the thread. */
  readonly written: number
  readonly retried: number
  readonly droppedDetails: number
  readonly droppedRows: number
  readonly damaged: number
}

/** A message to the thread, in order. */
export type ToWriter =
  | { readonly kind: 'lines'; readonly number: number; readonly lines: string; readonly rows: number }
  /** Polls totals of budgets from now on. */
  | { readonly kind: 'watchBudgets' }
  /** Writes everything while the database responds, then ends. */
  | { readonly kind: 'close' }

/** A message of the thread, in order. */
export type FromWriter =
  /** The thread runs; it connects later. */
  | { readonly kind: 'ready' }
  /** The settings are not valid: the thread ends. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** The lines are in the spool, or in memory if it is not writable. */
  | { readonly kind: 'accepted'; readonly number: number }
  | { readonly kind: 'budgets'; readonly update: BudgetUpdate }
  | { readonly kind: 'status'; readonly status: WriterStatus }
  | {
      readonly kind: 'log'
      readonly level: 'info' | 'warn' | 'error'
      readonly fields: object
      readonly message: string
    }
  | { readonly kind: 'closed' }
