import type { LedgerEntry } from './entry.ts'

/** Receives the entries of a data plane. Never waits, never throws. */
export type LedgerSink = {
  record(entry: LedgerEntry): void
}
