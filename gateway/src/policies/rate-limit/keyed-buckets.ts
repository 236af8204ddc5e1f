import { hash } from 'node:crypto'
import { type Bucket, createBucket, isFull, type Rate, refillBucket } from './bucket.ts'

/** One bucket per value of a limit's key. Up to `maxKeys` values have a bucket of their own. */
export type KeyedBuckets = {
  /** The refilled bucket of a value; undefined stands for requests that have no value and share a bucket. */
  find(key: string | undefined, rate: Rate, nowMs: number): Bucket
  /** The bucket that counts now what `bucket`, found earlier, counted then. */
  current(bucket: Bucket, rate: Rate, nowMs: number): Bucket
  readonly size: number
}

/** Buckets looked at for every new value. More than one, so that idle buckets go faster than new ones come. */
const stepsPerInsert = 2
/** Buckets looked at when there is no room. */
const stepsWhenFull = 32
const longestPlainKey = 64

/**
 * Full buckets are forgotten a few at a time, whenever a new value needs room: no timer, and no request pays for all.
 * When none of those looked at is full, the new value shares one overflow bucket with all others in that position,
 * so a client that invents values gains nothing.
 */
export function createKeyedBuckets(maxKeys: number): KeyedBuckets {
  const buckets = new Map<string, Bucket>()
  let hand = buckets.values()
  let withoutValue: Bucket | undefined
  let overflow: Bucket | undefined

  function find(key: string | undefined, rate: Rate, nowMs: number): Bucket {
    const bucket = key === undefined ? noValueBucket(nowMs) : ownBucket(boundedKey(key), rate, nowMs)
    refillBucket(bucket, rate, nowMs)
    return bucket
  }

  function noValueBucket(nowMs: number): Bucket {
    withoutValue ??= createBucket(nowMs)
    return withoutValue
  }

  function ownBucket(key: string, rate: Rate, nowMs: number): Bucket {
    const known = buckets.get(key)
    if (known !== undefined) return known
    forgetFull(buckets.size < maxKeys ? stepsPerInsert : stepsWhenFull, rate, nowMs)
    if (buckets.size >= maxKeys) {
      overflow ??= createBucket(nowMs)
      return overflow
    }
    const created = createBucket(nowMs, ownCopy(key))
    buckets.set(created.key, created)
    return created
  }

  function forgetFull(steps: number, rate: Rate, nowMs: number) {
    for (let step = 0; step < steps; step++) {
      const next = hand.next()
      if (next.done) {
        hand = buckets.values()
        continue
      }
      const bucket = next.value
      if (!isFull(bucket, rate, nowMs)) continue
      bucket.forgotten = true
      buckets.delete(bucket.key)
    }
  }

  return {
    find,
    current(bucket, rate, nowMs) {
      if (bucket.forgotten) return find(bucket.key, rate, nowMs)
      refillBucket(bucket, rate, nowMs)
      return bucket
    },
    get size() {
      return buckets.size
    },
  }
}

/** Clients choose values, so their length is bounded too. */
function boundedKey(key: string): string {
  return key.length <= longestPlainKey ? key : `sha256:${hash('sha256', key, 'base64')}`
}

/** A value cut out of a long text would keep all of that text in memory. */
function ownCopy(key: string): string {
  const narrow = Buffer.from(key, 'latin1').toString('latin1')
  return narrow === key ? narrow : Buffer.from(key, 'utf16le').toString('utf16le')
}
