/** Capacity and refill rate of a token bucket, in whole units and milliseconds. */
export type Rate = {
  /** Base and burst. */
  readonly capacity: number
  /** Units added per interval: the base. */
  readonly refill: number
  readonly intervalMs: number
}

/** A rate of a configuration. */
export type ConfiguredRate = Rate & {
  /** Time of its compilation. */
  readonly sinceMs: number
}

/** Whether two rates are equal. */
export function isEqual(one: Rate, other: Rate): boolean {
  return one.intervalMs === other.intervalMs && one.capacity === other.capacity && one.refill === other.refill
}

/**
 * Token bucket that stores used units instead of remaining ones, so that usage survives a change of the rate.
 * An unused bucket is equivalent to a missing one, so full buckets may be evicted.
 */
export type Bucket = {
  used: number
  refilledAt: number
  /** Units that this process may consume until its next lease. Undefined for buckets of this process only. */
  allowance?: number
}

/** Creates a full bucket whose intervals start now. Times are whole milliseconds of a monotonic clock. */
export function createBucket(nowMs: number): Bucket {
  return { used: 0, refilledAt: nowMs }
}

/** Applies one refill per interval elapsed since the last refill. */
export function refillBucket(bucket: Bucket, rate: Rate, nowMs: number) {
  // A reload may reduce the capacity below the used units; the next refill still adds its full amount.
  if (bucket.used > rate.capacity) bucket.used = rate.capacity
  const elapsedMs = nowMs - bucket.refilledAt
  if (elapsedMs >= rate.intervalMs) {
    const intervals = Math.floor(elapsedMs / rate.intervalMs)
    bucket.refilledAt += intervals * rate.intervalMs
    bucket.used = Math.max(0, bucket.used - intervals * rate.refill)
  }
}

/** Returns the used units at a time, including due refills, without a change to the bucket. */
export function usedAt(bucket: Bucket, rate: Rate, nowMs: number): number {
  const intervals = Math.max(0, Math.floor((nowMs - bucket.refilledAt) / rate.intervalMs))
  return Math.max(0, Math.min(rate.capacity, bucket.used) - intervals * rate.refill)
}

/** Consumes `amount`, capped at the capacity, so that the next refill adds its full amount. */
export function consume(bucket: Bucket, rate: Rate, amount: number) {
  bucket.used = Math.max(bucket.used, Math.min(rate.capacity, bucket.used + amount))
  if (bucket.allowance !== undefined) bucket.allowance -= amount
}

/** Whether another unit exceeds the limit, or the lease of this process. */
export function isExhausted(bucket: Bucket, rate: Rate): boolean {
  return bucket.used >= rate.capacity || isWithoutLease(bucket, rate)
}

/** Whether only the lease of this process is exhausted. */
function isWithoutLease({ used, allowance }: Bucket, { capacity }: Rate): boolean {
  return allowance !== undefined && allowance < 1 && used < capacity
}

/** Returns one unit consumed at `takenAtMs`, unless a refill since then may have covered it. */
export function returnUnit(bucket: Bucket, takenAtMs: number) {
  if (bucket.refilledAt > takenAtMs || bucket.used <= 0) return
  bucket.used -= 1
  if (bucket.allowance !== undefined) bucket.allowance += 1
}

/**
 * Whole seconds until the next refill that admits a request, rounded up, at least 1. A new lease takes less
 * than a second.
 */
export function secondsToRefill(bucket: Bucket, rate: Rate, nowMs: number): number {
  if (isWithoutLease(bucket, rate)) return 1
  // A bucket of several processes may be used beyond its capacity.
  const isBeyond = bucket.allowance !== undefined && bucket.used > rate.capacity
  const refills = isBeyond ? Math.ceil((bucket.used - rate.capacity + 1) / rate.refill) : 1
  // Another data plane may have refilled it a moment after `nowMs`.
  const fromMs = Math.max(nowMs, bucket.refilledAt)
  return Math.ceil((bucket.refilledAt + refills * rate.intervalMs - fromMs) / 1000)
}

/** Whether the bucket is full, including due refills. */
export function isFull(bucket: Bucket, rate: Rate, nowMs: number): boolean {
  if (bucket.used === 0) return true
  const intervals = Math.floor((nowMs - bucket.refilledAt) / rate.intervalMs)
  return intervals * rate.refill >= Math.min(bucket.used, rate.capacity)
}
