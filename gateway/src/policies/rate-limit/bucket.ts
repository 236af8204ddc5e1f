/** Size and pace of a token bucket, in whole units and milliseconds. */
export type Rate = {
  /** Most that can be used at once: base and burst together. */
  readonly capacity: number
  /** What comes back per interval: the base. */
  readonly refill: number
  readonly intervalMs: number
}

/**
 * What is used of a token bucket, rather than what is left: a limit whose numbers change in a reload keeps what was used.
 * A bucket that nobody used is like one that does not exist, which is why full buckets may be forgotten.
 */
export type Bucket = {
  used: number
  refilledAt: number
  /** The value it counts, among the buckets of a limit with a key. */
  readonly key: string
  /** No longer found by its key, because it was full: what is counted later belongs to its successor. */
  evicted: boolean
}

/** A full bucket. Its intervals count from here. Times are whole milliseconds of a clock that never goes back. */
export function createBucket(nowMs: number, key: string = ''): Bucket {
  return { used: 0, refilledAt: nowMs, key, evicted: false }
}

/** Brings the bucket up to date: one refill for every interval that has passed since the last one. */
export function refillBucket(bucket: Bucket, rate: Rate, nowMs: number) {
  // A reload may have made the bucket smaller than what is used of it; the next refill gives its full share all the same.
  if (bucket.used > rate.capacity) bucket.used = rate.capacity
  const elapsedMs = nowMs - bucket.refilledAt
  if (elapsedMs >= rate.intervalMs) {
    const intervals = Math.floor(elapsedMs / rate.intervalMs)
    bucket.refilledAt += intervals * rate.intervalMs
    bucket.used = Math.max(0, bucket.used - intervals * rate.refill)
  }
}

/** What is used of the bucket at a time, refills that are due counted in. Changes nothing. */
export function usedAt(bucket: Bucket, rate: Rate, nowMs: number): number {
  const intervals = Math.max(0, Math.floor((nowMs - bucket.refilledAt) / rate.intervalMs))
  return Math.max(0, Math.min(rate.capacity, bucket.used) - intervals * rate.refill)
}

/** Counts `amount`. What goes beyond the capacity is forgiven: the next refill gives its full share. */
export function consume(bucket: Bucket, rate: Rate, amount: number) {
  bucket.used = Math.min(rate.capacity, bucket.used + amount)
}

/** Gives one unit back that was taken at `takenAtMs`, unless a refill has come in between and may have covered it. */
export function returnUnit(bucket: Bucket, takenAtMs: number) {
  if (bucket.refilledAt <= takenAtMs && bucket.used > 0) bucket.used -= 1
}

/** Whole seconds until the next refill, at least one: who waits that long finds the refill done. */
export function secondsToRefill(bucket: Bucket, rate: Rate, nowMs: number): number {
  return Math.ceil((bucket.refilledAt + rate.intervalMs - nowMs) / 1000)
}

/** Whether the bucket holds its whole capacity, a refill that is due counted in. */
export function isFull(bucket: Bucket, rate: Rate, nowMs: number): boolean {
  if (bucket.used === 0) return true
  const intervals = Math.floor((nowMs - bucket.refilledAt) / rate.intervalMs)
  return intervals * rate.refill >= Math.min(bucket.used, rate.capacity)
}
