// Counts of durations in buckets of equal ratio: 4 per octave from 0.25 ms to 70 minutes, so that quantiles
// are within 10 %. The histograms of `/metrics` are coarser, and have one series per route.

const perOctave = 4
const perMillisecond = 4
export const sketchBuckets = 96

/** Index of the bucket of a duration. */
export function bucketOf(durationMs: number): number {
  if (durationMs <= 1 / perMillisecond) return 0
  const index = Math.ceil(Math.log2(durationMs * perMillisecond) * perOctave)
  return index < sketchBuckets ? index : sketchBuckets - 1
}

/** Quantile of a sketch in milliseconds, `fraction` from 0 to 1; undefined without values. */
export function quantileOf(counts: readonly number[], fraction: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const rank = Math.max(1, Math.ceil(total * fraction))
  let seen = 0
  const index = counts.findIndex((count) => {
    seen += count
    return seen >= rank
  })
  // The geometric middle of the bucket.
  return 2 ** ((index - 0.5) / perOctave) / perMillisecond
}
