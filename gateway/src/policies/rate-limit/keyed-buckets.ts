import { hash } from 'node:crypto'
import { type Bucket, createBucket, isFull, type Rate, refillBucket } from './bucket.ts'

/** One bucket per value of a limit's key. Up to `maxKeys` values have a bucket of their own. */
export type KeyedBuckets = {
  /** The refilled bucket of a value; undefined stands for requests that have no value and share a bucket. */
  find(key: string | undefined, rate: Rate, nowMs: number): Bucket
  /** The bucket that counts now what `bucket`, found earlier, counted then. */
  current(bucket: Bucket, rate: Rate, nowMs: number): Bucket
  readonly size: number
  /** Every bucket, a part at a time; the value is undefined where many share one. Changes nothing. */
  parts(): Iterable<Iterable<{ value: string | undefined; bucket: Bucket }>>
}

/** Buckets looked at for every new value. More than one, so that idle buckets go faster than new ones come. */
const stepsPerInsert = 2
/** Buckets looked at when there is no room. */
const stepsWhenFull = 32
const longestPlainKey = 64
/** A Map that grows moves all its entries at once: 150 ms for a million. Many small ones never pause for long. */
const shardCount = 64

/**
 * Full buckets are forgotten a few at a time, whenever a new value needs room: no timer, and no request pays for all.
 * When none of those looked at is full, the new value shares one overflow bucket with all others in that position,
 * so a client that invents values gains nothing.
 */
export function createKeyedBuckets(maxKeys: number): KeyedBuckets {
  const shards = Array.from({ length: shardCount }, () => new Map<string, Bucket>())
  const walk = endlessWalk(shards)
  let size = 0
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
    const shard = shardOf(shards, key)
    const known = shard.get(key)
    if (known !== undefined) return known
    forgetFull(size < maxKeys ? stepsPerInsert : stepsWhenFull, rate, nowMs)
    if (size >= maxKeys) {
      overflow ??= createBucket(nowMs)
      return overflow
    }
    const created = createBucket(nowMs, ownCopy(key))
    shard.set(created.key, created)
    size += 1
    return created
  }

  function forgetFull(steps: number, rate: Rate, nowMs: number) {
    for (let step = 0; step < steps; step++) {
      const bucket = walk()
      if (bucket === undefined) return
      if (!isFull(bucket, rate, nowMs)) continue
      bucket.evicted = true
      shardOf(shards, bucket.key).delete(bucket.key)
      size -= 1
    }
  }

  return {
    find,
    current(bucket, rate, nowMs) {
      if (bucket.evicted) return find(bucket.key, rate, nowMs)
      refillBucket(bucket, rate, nowMs)
      return bucket
    },
    get size() {
      return size
    },
    *parts() {
      const shared = [withoutValue, overflow].filter((bucket) => bucket !== undefined)
      yield shared.map((bucket) => ({ value: undefined, bucket }))
      for (const shard of shards) {
        yield shard.values().map((bucket) => ({ value: bucket.key, bucket }))
      }
    },
  }
}

/** Each call gives the next bucket, round and round; undefined when there is none. */
function endlessWalk(shards: readonly Map<string, Bucket>[]): () => Bucket | undefined {
  let position = 0
  let buckets = shards[0]?.values()
  return () => {
    // One round more than there are shards: the first may be at its end, and come again at the last.
    for (let round = 0; round <= shards.length; round++) {
      const next = buckets?.next()
      if (next !== undefined && !next.done) return next.value
      position = (position + 1) % shards.length
      buckets = shards[position]?.values()
    }
    return undefined
  }
}

/** The ends of values differ most. */
function shardOf(shards: readonly Map<string, Bucket>[], key: string): Map<string, Bucket> {
  const { length } = key
  let mixed = length
  for (let index = Math.max(0, length - 4); index < length; index++)
    mixed = mixed * 31 + key.charCodeAt(index)
  const shard = shards[mixed % shards.length]
  if (shard === undefined) throw new RangeError('there are no shards')
  return shard
}

const hashMark = 'sha256:'

/** Clients choose values, so their length is bounded too. One that looks like a hash must not count as what has it. */
function boundedKey(key: string): string {
  if (key.length <= longestPlainKey && !key.startsWith(hashMark)) return key
  return `${hashMark}${hash('sha256', key, 'base64')}`
}

/** A value cut out of a long text would keep all of that text in memory. */
function ownCopy(key: string): string {
  const narrow = Buffer.from(key, 'latin1').toString('latin1')
  return narrow === key ? narrow : Buffer.from(key, 'utf16le').toString('utf16le')
}
