import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { readBucketName } from '../../../pipeline/keys/key-limits.ts'
import { type Bucket, type Rate, secondsToRefill, usedAt } from '../bucket.ts'
import { wholeMs } from '../limit.ts'
import { keyBucketsOf } from './key-limits.ts'

/** Current state of the limits of virtual keys. Limits without used units are not counted. */
export type KeyLimitsSnapshot = {
  /** Number of limits with used units. */
  used: number
  exhausted: number
  /** Limits with the smallest remaining share, in ascending order. */
  fullest: KeyLimitStatus[]
}

export type KeyLimitStatus = {
  keyId: string
  counts: string
  /** Base and burst. */
  capacity: number
  /** Units added after each interval. */
  refill: number
  intervalSeconds: number
  remaining: number
  resetSeconds: number
}

const fullestShown = 10
/** Buckets read between two yields to traffic. */
const bucketsPerTurn = 5_000

/** Reads the limits of virtual keys without a change to the counts, and yields to traffic in between. */
export async function takeKeyLimitsSnapshot(context: CompileContext): Promise<KeyLimitsSnapshot> {
  const nowMs = wholeMs(context.clock)
  const fullest: { name: string; bucket: Bucket; rate: Rate; share: number }[] = []
  let [used, exhausted, seen] = [0, 0, 0]
  for (const read of keyBucketsOf(context).all()) {
    seen += 1
    if (seen % bucketsPerTurn === 0) await new Promise(setImmediate)
    if (read === undefined) continue
    const { rate, bucket } = read
    const units = usedAt(bucket, rate, nowMs)
    if (units === 0) continue
    used += 1
    if (units >= rate.capacity) exhausted += 1
    const share = 1 - units / rate.capacity
    const last = fullest.at(-1)
    if (last !== undefined && fullest.length === fullestShown && share >= last.share) continue
    fullest.push({ ...read, share })
    fullest.sort((one, other) => one.share - other.share)
    fullest.length = Math.min(fullest.length, fullestShown)
  }
  return { used, exhausted, fullest: fullest.map((one) => statusOf(one, nowMs)) }
}

function statusOf(
  { name, bucket, rate }: { name: string; bucket: Bucket; rate: Rate },
  nowMs: number,
): KeyLimitStatus {
  const { keyId, counts } = readBucketName(name)
  return {
    keyId,
    counts,
    capacity: rate.capacity,
    refill: rate.refill,
    intervalSeconds: rate.intervalMs / 1000,
    remaining: rate.capacity - usedAt(bucket, rate, nowMs),
    resetSeconds: secondsToRefill(bucket, rate, nowMs),
  }
}
