import type { JsonObject } from '../lib/json.ts'

/** One stored record. Secret fields of `value` are in the clear here, whatever they are at rest. */
export type StoredResource = {
  readonly kind: string
  readonly id: string
  readonly value: JsonObject
  /** Starts at 1, one more with each update. */
  readonly revision: number
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string
  readonly updatedAt: string
}

/** What differs from an earlier state of the store. */
export type StoreDelta = {
  readonly changed: readonly StoredResource[]
  readonly removed: readonly { readonly kind: string; readonly id: string }[]
  /** State of the store that this leads to; grows with every commit. */
  readonly generation: number
  /** The delta is not known: `changed` is everything there is, and what it lacks is gone. */
  readonly complete: boolean
}

/** Changes to commit together. A put without a stored record creates it. */
export type StoreChange =
  | { readonly op: 'put'; readonly kind: string; readonly id: string; readonly value: JsonObject }
  | { readonly op: 'remove'; readonly kind: string; readonly id: string }

/** Decides, with the latest state known, what to commit. Throws or returns undefined to commit nothing. */
export type PlanChanges = (sinceKnown: StoreDelta) => Promise<readonly StoreChange[] | undefined>

/**
 * Where resources live in hybrid mode. Calls reject with `StoreUnavailable` when the database cannot be reached or answers
 * with an error; nothing is half-committed then.
 */
export type ResourceStore = {
  /** Everything, or what changed since a generation where that is known. */
  read(since: number | undefined): Promise<StoreDelta>
  /**
   * One serialised step among all writers of the database: takes the write lock, reads what changed since `known`, asks
   * `plan`, commits. Resolves with what changed since `known`, own changes included. Waits for the lock at most 10 s.
   */
  write(known: number, plan: PlanChanges): Promise<StoreDelta>
  /** Calls `onChange` when others may have committed something; may call it needlessly. `onLost` when watching fails for now. */
  watch(watcher: { onChange(): void; onLost(error: Error): void }): void
  close(): Promise<void>
}

export class StoreUnavailable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'StoreUnavailable'
  }
}
