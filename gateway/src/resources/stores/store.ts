import type { JsonObject } from '../../lib/json/json.ts'
import type { DecodedVersion } from './value-codec.ts'

/** One stored record. Secret fields of `value` are decrypted. */
export type StoredResource = {
  readonly kind: string
  readonly id: string
  readonly value: JsonObject
  /**
   * Starts at 1 and increases with each update. A record that is created again continues after its last
   * revision.
   */
  readonly revision: number
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string
  readonly updatedAt: string
}

/** A stored record whose value cannot be read: encrypted with another key, or damaged. */
export type UnreadableResource = Omit<StoredResource, 'value'> & {
  /** For the log and the API; contains no part of the value. */
  readonly reason: string
  /**
   * The value with a random text in place of each field that cannot be decrypted, if the rest is readable.
   */
  readonly partial?: JsonObject
}

/** Difference from an earlier state of the store. Lists are unordered. */
export type StoreDelta = {
  readonly changed: readonly StoredResource[]
  /** Records that exist or have changed, but cannot be read. */
  readonly unreadable: readonly UnreadableResource[]
  readonly removed: readonly { readonly kind: string; readonly id: string }[]
  /** Resulting state of the store; increases with every commit. */
  readonly generation: number
  /** Whether `changed` and `unreadable` are all records of the store, so that others were removed. */
  readonly complete: boolean
}

/**
 * Changes to commit together. A put creates or replaces the record; a remove without a record does nothing.
 * Of several changes of one record, the last is applied.
 */
export type StoreChange =
  | {
      readonly op: 'put'
      readonly kind: string
      readonly id: string
      readonly value: JsonObject
      readonly history?: HistoryNote | undefined
    }
  | {
      readonly op: 'remove'
      readonly kind: string
      readonly id: string
      readonly history?: HistoryNote | undefined
    }

/** Author and kind of a change, for its record in the history. */
export type HistoryOrigin = {
  readonly origin: 'write' | 'import' | 'revert'
  /** Record of the history that the change reverts. */
  readonly reverts?: number | undefined
  readonly principal?: string | undefined
  readonly address: string
  readonly requestId: string
}

export type HistoryNote = HistoryOrigin & {
  readonly op: 'create' | 'update' | 'delete'
  /** Value before the change; undefined if there was none, or if it was unreadable. */
  readonly before: JsonObject | undefined
}

/** Record of one change in the history. */
export type HistoryRecord = HistoryOrigin & {
  /** Increases with each record. */
  readonly id: number
  /** ISO 8601, UTC, milliseconds. */
  readonly at: string
  readonly op: HistoryNote['op']
  readonly kind: string
  readonly resourceId: string
  /** Revision of the resource after the change; the last one of a deleted resource. */
  readonly revision: number
  readonly before: DecodedVersion | undefined
  readonly after: DecodedVersion | undefined
}

/** Selects records of the history, latest first. Absent members select all. */
export type HistoryQuery = {
  /** Only records with an id below this one. */
  readonly below?: number | undefined
  readonly id?: number | undefined
  readonly kind?: string | undefined
  readonly resourceId?: string | undefined
  /** Principal or address. */
  readonly who?: string | undefined
  /** ISO 8601 times, UTC, milliseconds: `from` inclusive, `to` exclusive. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly limit: number
}

/** A page of the history; a page before the last may have less records than the limit. */
export type HistoryPage = { readonly records: readonly HistoryRecord[]; readonly isLast: boolean }

/**
 * Returns the changes to commit, given the latest state. Throws or returns undefined to commit nothing. Runs
 * under the lock of all writers: it must not call the store, and is limited to 60 s.
 */
export type PlanChanges = (sinceKnown: StoreDelta) => Promise<readonly StoreChange[] | undefined>

/**
 * Store of resources in hybrid mode. Calls reject with `DatabaseUnavailable` if the database is unreachable
 * or returns an error; commits are atomic. If the connection broke during a commit, it may have succeeded:
 * the next read shows the result.
 */
export type ResourceStore = {
  /** Reads the changes since a generation; all records if it is undefined or too old. */
  read(since: number | undefined): Promise<StoreDelta>
  /**
   * One serialised step among all writers of the database: acquires the write lock, reads the changes since
   * `known`, calls `plan`, commits. Resolves with the changes since `known`, own ones included. Waits for the
   * lock at most 10 s. If the store is watched, rejects immediately during an outage.
   */
  write(known: number, plan: PlanChanges): Promise<StoreDelta>
  /** Reads the history. Changes with a `history` note leave a record in the same transaction. */
  history(query: HistoryQuery): Promise<HistoryPage>
  /**
   * Calls `onChange` after commits of other processes, and possibly without one; `onLost` once at the start
   * of an outage, and `onChange` after its end.
   */
  watch(watcher: { onChange(): void; onLost(error: Error): void }): void
  close(): Promise<void>
}
