import type { JsonObject } from '../../lib/json/json.ts'

/** One stored record. Secret fields of `value` are in the clear here, whatever they are at rest. */
export type StoredResource = {
  readonly kind: string
  readonly id: string
  readonly value: JsonObject
  /** Starts at 1, one more with each update. A record that is created again continues above its last revision. */
  readonly revision: number
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string
  readonly updatedAt: string
}

/** A stored record whose value cannot be read: encrypted with another key, or damaged. It exists and is not trusted. */
export type UnreadableResource = Omit<StoredResource, 'value'> & {
  /** For a person; holds nothing of the value. */
  readonly reason: string
  /** The value with a random text in place of each field that cannot be decrypted, where the rest can be read. */
  readonly partial?: JsonObject
}

/** What differs from an earlier state of the store; lists are in no particular order. */
export type StoreDelta = {
  readonly changed: readonly StoredResource[]
  /** Records that are there, or have changed, but cannot be read. */
  readonly unreadable: readonly UnreadableResource[]
  readonly removed: readonly { readonly kind: string; readonly id: string }[]
  /** State of the store that this leads to; grows with every commit. */
  readonly generation: number
  /** The delta is not known: `changed` and `unreadable` are everything there is, and what they lack is gone. */
  readonly complete: boolean
}

/**
 * Changes to commit together. A put without a stored record creates it, a remove without one does nothing. Of several
 * changes of one record the last counts.
 */
export type StoreChange =
  | { readonly op: 'put'; readonly kind: string; readonly id: string; readonly value: JsonObject }
  | { readonly op: 'remove'; readonly kind: string; readonly id: string }

/**
 * Decides, with the latest state known, what to commit. Throws or returns undefined to commit nothing. It holds the lock of
 * all writers, so it must not call the store, and has 60 s.
 */
export type PlanChanges = (sinceKnown: StoreDelta) => Promise<readonly StoreChange[] | undefined>

/**
 * Where resources live in hybrid mode. Calls reject with `StoreUnavailable` when the database cannot be reached or answers
 * with an error; nothing is half-committed then. Where the connection broke during the commit, all of it may have been
 * committed: the next read tells.
 */
export type ResourceStore = {
  /** Everything, or what changed since a generation where that is known. */
  read(since: number | undefined): Promise<StoreDelta>
  /**
   * One serialised step among all writers of the database: takes the write lock, reads what changed since `known`, asks
   * `plan`, commits. Resolves with what changed since `known`, own changes included. Waits for the lock at most 10 s. Where the
   * store is watched, an outage that is known rejects it at once.
   */
  write(known: number, plan: PlanChanges): Promise<StoreDelta>
  /**
   * Calls `onChange` when others may have committed something; may call it needlessly. `onLost` when watching fails for now:
   * once, then `onChange` when it works again.
   */
  watch(watcher: { onChange(): void; onLost(error: Error): void }): void
  close(): Promise<void>
}

/** `message` is for the log and the admin: it names the database, and holds no credentials and nothing of a value. */
export class StoreUnavailable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'StoreUnavailable'
  }
}
