import type { LedgerStore } from '../store/store.ts'

/** Deletes rows and sums that are older than their retention, in steps. */
export type Retention = {
  /** Milliseconds until the next step. */
  dueInMs(): number
  /** Runs one step: a short transaction. Rejects as the store does; the step is repeated later. */
  step(): Promise<void>
}

export type RetentionOptions = {
  store: Pick<LedgerStore, 'pruneRequests' | 'pruneUsage'>
  retentionMs: number
  usageRetentionMs: number
  /** Milliseconds since the epoch. */
  now(): number
  monotonic(): number
}

/** Rows of a step: the lock of the database is short. */
const stepRows = 1_000
const betweenStepsMs = 50
const betweenRunsMs = 600_000
const firstRunMs = 5_000

export function createRetention(options: RetentionOptions): Retention {
  const { store, retentionMs, usageRetentionMs, now, monotonic } = options
  let nextAt = monotonic() + firstRunMs
  let phase: 'requests' | 'usage' = 'requests'

  return {
    dueInMs: () => nextAt - monotonic(),
    async step() {
      // Before the step: an error delays the next one.
      nextAt = monotonic() + firstRunMs
      const deleted =
        phase === 'requests'
          ? await store.pruneRequests(now() - retentionMs, stepRows)
          : await store.pruneUsage(now() - usageRetentionMs, stepRows)
      const isDone = deleted < stepRows
      if (isDone && phase === 'usage') nextAt = monotonic() + betweenRunsMs
      else nextAt = monotonic() + betweenStepsMs
      if (isDone) phase = phase === 'requests' ? 'usage' : 'requests'
    },
  }
}
