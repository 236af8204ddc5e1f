import type { LedgerOperations } from '../../ledger/query/operations.ts'
import type { Clock } from '../../lib/clock.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import type { RandomBytes } from '../../policies/api-key/new-key.ts'
import type { Resources } from '../../resources/resources.ts'
import type { DerivedIds } from './key-entries.ts'

export type KeysOptions = {
  readonly resources: Resources
  readonly clock: Clock
  readonly yieldPoint: YieldPoint
  readonly randomBytes: RandomBytes
  readonly newRequestId: () => string
  /** Flushes the log: the audit line of a rotation is written before the response. */
  readonly flushLog: () => Promise<void>
  /** Reads the ledger; undefined without one. */
  readonly ledger: KeyLedger | undefined
}

/** Options of the endpoints, and results that they share. */
export type KeysContext = KeysOptions & { readonly derivedIds: DerivedIds }

/** Queries of the ledger about keys. */
export type KeyLedger = Pick<LedgerOperations, 'readKeysUsed' | 'summarize'>
