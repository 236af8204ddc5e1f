import { hash } from 'node:crypto'
import { type Bucket, createBucket, isFull, type Rate, refillBucket } from './bucket.ts'

/** Buckets of a limit by key value, for up to `maxKeys` values. */
export type KeyedBuckets = {
  /** Returns the refilled bucket of a value. Requests without a value (undefined) share a bucket. */
  find(key: string | undefined, rate: Rate, nowMs: number): Bucket
  /** Returns the current bucket of the key of an earlier `bucket`. */
  current(bucket: Bucket, rate: Rate, nowMs: number): Bucket
  readonly size: number
  /** Iterates over all buckets in parts, read-only. The value of shared buckets is undefined. */
  parts(): Iterable<Iterable<{ value: string | undefined; bucket: Bucket }>>
}

/**
 * Buckets inspected per new value. More than one, so that idle buckets are evicted faster than new ones are
 * added.
 */
const stepsPerInsert = 2
/** Buckets inspected per new value at capacity. */
const stepsWhenFull = 32
const longestPlainKey = 64
/** A growing Map rehashes all entries in one step: 150 ms for a million. Shards bound the pause. */
const shardCount = 64

/**
 * Creates buckets with incremental eviction: each new value evicts a few full buckets, without a timer or a
 * full scan. If no inspected bucket is full at capacity, new values share one overflow bucket, so that a
 * client gains nothing from invented values.
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
    evictFull(size < maxKeys ? stepsPerInsert : stepsWhenFull, rate, nowMs)
    if (size >= maxKeys) {
      overflow ??= createBucket(nowMs)
      return overflow
    }
    const created = createBucket(nowMs, ownCopy(key))
    shard.set(created.key, created)
    size += 1
    return created
  }

  function evictFull(steps: number, rate: Rate, nowMs: number) {
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

/** Returns an endless iterator over all buckets; undefined if there are none. */
function endlessWalk(shards: readonly Map<string, Bucket>[]): () => Bucket | undefined {
  let position = 0
  let buckets = shards[0]?.values()
  return () => {
    // One round more than shards: the current iterator may be at the end of the first shard.
    for (let round = 0; round <= shards.length; round++) {
      const next = buckets?.next()
      if (next !== undefined && !next.done) return next.value
      position = (position + 1) % shards.length
      buckets = shards[position]?.values()
    }
    return undefined
  }
}

/** Hashes the last characters, which differ most between values. */
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

/**
 * Bounds the length of client-controlled values. Values that look like a hash are hashed, to avoid
 * collisions.
 */
function boundedKey(key: string): string {
  if (key.length <= longestPlainKey && !key.startsWith(hashMark)) return key
  return `${hashMark}${hash('sha256', key, 'base64')}`
}

/** Copies a value, because a substring retains the whole source string. */
function ownCopy(key: string): string {
  const narrow = Buffer.from(key, 'latin1').toString('latin1')
  return narrow === key ? narrow : Buffer.from(key, 'utf16le').toString('utf16le')
}
