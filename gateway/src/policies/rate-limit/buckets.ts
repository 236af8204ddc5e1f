import type { Bucket, ConfiguredRate } from './bucket.ts'

/**
 * Buckets of one limit, in memory of all data planes. `select`, `lock`, a decision on `bucket` and `unlock`
 * follow each other without a wait. Several limits are locked in the order of the names of their memory.
 */
export type Buckets = {
  /** Copy of the locked bucket, refilled. `unlock` writes it back; its values stay until the next lock. */
  readonly bucket: Bucket
  /**
   * Selects the bucket of a key value; of requests without a value if undefined. Only limits with a key
   * require it.
   */
  select(key: string | undefined, rate: ConfiguredRate): void
  /**
   * Locks the selected bucket. False if there is no room for it: then the caller unlocks all other buckets,
   * calls `makeRoom`, and locks again.
   */
  lock(rate: ConfiguredRate, nowMs: number): boolean
  makeRoom(nowMs: number): void
  unlock(): void
  /** Ends a step of limits with a key, after all buckets are unlocked. */
  settle(nowMs: number): void
  /** Reference to the selected bucket, for later calls of `charge` and `giveBack`. */
  reference(): BucketReference
  /** Charges a bucket, or its successor, at the rate of the latest request. */
  charge(reference: BucketReference, amount: number, nowMs: number): void
  /** Returns one unit consumed at `takenAtMs`. */
  giveBack(reference: BucketReference, takenAtMs: number): void
  /** State of the count over several processes; absent for buckets of this process only. */
  sharing?(): { readonly processes: number; readonly synchronized: boolean }
  /** Iterates over the positions of buckets, for `read` and `valueOf`. */
  positions(): Iterable<number>
  /** Returns a copy of the bucket at a position; undefined if there is none. */
  read(position: number): Bucket | undefined
  /** Key value of the bucket at a position; undefined for shared buckets. */
  valueOf(position: number): string | undefined
}

/** Reference to a bucket. Evicted buckets have another generation, and a successor of the same key. */
export type BucketReference = {
  readonly position: number
  readonly generation: number
  readonly key: string | undefined
}
