import { dayMs, hourMs } from '../../../lib/duration.ts'

const weekMs = 7 * dayMs
/** Monday, 5 January 1970. */
const mondayMs = 4 * dayMs

/** Lengths of buckets that the server selects: divisors of an hour, of a day, a day, and weeks. */
const lengths: readonly number[] = [
  ...[1, 5, 10, 15, 30, 60, 300, 600, 900, 1_800].map((seconds) => seconds * 1_000),
  ...[1, 2, 3, 6].map((hours) => hours * hourMs),
  dayMs,
  weekMs,
]

/** Most buckets of a summary. */
export const maxBuckets = 2_000

/** The shortest length of which at most `count` buckets cover the range; multiples of weeks if none does. */
export function chooseBucketMs(rangeMs: number, count: number): number {
  const least = rangeMs / count
  return lengths.find((length) => length >= least) ?? Math.ceil(least / weekMs) * weekMs
}

/** Start of the bucket of a time: multiples of the length since the epoch; weeks start on Monday, in UTC. */
export function bucketStart(time: number, bucketMs: number): number {
  const offset = offsetOf(bucketMs)
  return Math.floor((time - offset) / bucketMs) * bucketMs + offset
}

/** `bucketStart` in SQL, of a column with times after the epoch. */
export function bucketSql(column: string, bucketMs: number): string {
  const offset = offsetOf(bucketMs)
  // A multiple of the length is added: integer division truncates towards zero.
  const shift = offset === 0 ? 0 : bucketMs - offset
  return `((${column} + ${shift}) / ${bucketMs} * ${bucketMs} - ${shift})`
}

function offsetOf(bucketMs: number): number {
  return bucketMs % weekMs === 0 ? mondayMs : 0
}
