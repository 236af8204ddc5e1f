/**
 * Counts of a native histogram of Prometheus, an exponential histogram of OpenTelemetry. Bucket `index` has
 * the values above `2 ** ((index - 1) / 2 ** schema)`, up to and including `2 ** (index / 2 ** schema)`.
 */
export type NativeCounts = { schema: number; zero: number; buckets: Map<number, number> }

/** Values up to this one are in the bucket of zero. */
export const zeroThreshold = 2 ** -128

/** Eight buckets in each power of two: boundaries differ by 9 %. */
const firstSchema = 3
const lastSchema = -4

/** With more buckets, neighbours are united. */
const maxBuckets = 160

export function createNativeCounts(): NativeCounts {
  return { schema: firstSchema, zero: 0, buckets: new Map() }
}

export function countNative(counts: NativeCounts, value: number): void {
  if (!(value > zeroThreshold)) {
    counts.zero += 1
    return
  }
  const finite = Math.min(value, Number.MAX_VALUE)
  add(counts.buckets, Math.ceil(Math.log2(finite) * 2 ** counts.schema), 1)
  limit(counts)
}

/** The sum of two histograms, with the wider buckets of the two. */
export function addNative(
  one: NativeCounts | undefined,
  other: NativeCounts | undefined,
): NativeCounts | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const sum = copyNative(one)
  sum.zero += other.zero
  while (sum.schema > other.schema) unite(sum)
  const width = 2 ** (other.schema - sum.schema)
  for (const [index, count] of other.buckets) add(sum.buckets, Math.ceil(index / width), count)
  limit(sum)
  return sum
}

export function copyNative({ schema, zero, buckets }: NativeCounts): NativeCounts {
  return { schema, zero, buckets: new Map(buckets) }
}

/** Buckets that are not empty, in the order of their index. */
export function sortedBuckets({ buckets }: NativeCounts): (readonly [index: number, count: number])[] {
  return [...buckets].sort(([one], [other]) => one - other)
}

function limit(counts: NativeCounts): void {
  while (counts.buckets.size > maxBuckets && counts.schema > lastSchema) unite(counts)
}

/** Unites each two neighbours. */
function unite(counts: NativeCounts): void {
  const united = new Map<number, number>()
  for (const [index, count] of counts.buckets) add(united, Math.ceil(index / 2), count)
  counts.buckets = united
  counts.schema -= 1
}

function add(buckets: Map<number, number>, index: number, count: number): void {
  // Without -0, which a message would distinguish from 0.
  const key = index + 0
  buckets.set(key, (buckets.get(key) ?? 0) + count)
}
