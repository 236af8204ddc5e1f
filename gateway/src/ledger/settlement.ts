import type { LedgerEntry } from './entry.ts'

/**
 * The entry without the amounts by which it corrects those of an earlier request: a request is settled once,
 * over all processes of a database.
 */
export function withoutSettlement(entry: LedgerEntry): LedgerEntry {
  if (entry.settles === undefined) return entry
  return {
    ...entry,
    settles: undefined,
    tokens: undefined,
    tokensEstimated: false,
    costPicodollars: undefined,
    costStatus: undefined,
    charges: [],
  }
}
