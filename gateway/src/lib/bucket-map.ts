/**
 * Immutable map of many random keys (ids, digests) with cheap updates: a change copies one of many buckets
 * and shares the rest.
 */
export type BucketMap<V> = { readonly buckets: readonly ReadonlyMap<string, V>[]; readonly size: number }

/** With 100,000 entries a bucket has about a hundred. A power of two. */
const bucketCount = 1024

export function bucketMap<V>(entries: Iterable<readonly [string, V]> = []): BucketMap<V> {
  const nothing: ReadonlyMap<string, V> = new Map()
  return withEntries({ buckets: Array.from({ length: bucketCount }, () => nothing), size: 0 }, entries)
}

export function lookUp<V>({ buckets }: BucketMap<V>, key: string): V | undefined {
  return buckets[bucketOf(key)]?.get(key)
}

/** The values, in no particular order. */
export function* valuesOf<V>({ buckets }: BucketMap<V>): Generator<V> {
  for (const bucket of buckets) yield* bucket.values()
}

/** Returns the map with some values replaced; undefined removes a key. */
export function withEntries<V>(
  map: BucketMap<V>,
  entries: Iterable<readonly [string, V | undefined]>,
): BucketMap<V> {
  const buckets = [...map.buckets]
  const copies = new Map<number, Map<string, V>>()
  let { size } = map
  for (const [key, value] of entries) {
    const index = bucketOf(key)
    let bucket = copies.get(index)
    if (bucket === undefined) {
      bucket = new Map(buckets[index])
      copies.set(index, bucket)
      buckets[index] = bucket
    }
    size -= bucket.size
    if (value === undefined) bucket.delete(key)
    else bucket.set(key, value)
    size += bucket.size
  }
  return { buckets, size }
}

/** Hashes the last characters, which are as random as the others. */
function bucketOf(key: string): number {
  let hash = 0
  for (let at = Math.max(0, key.length - 6); at < key.length; at++)
    hash = (hash * 31 + key.charCodeAt(at)) | 0
  return hash & (bucketCount - 1)
}
