import { expect, it } from 'vitest'
import { bucketOf, quantileOf, sketchBuckets } from './sketch.ts'

function sketchOf(durations: readonly number[]): number[] {
  const counts = new Array<number>(sketchBuckets).fill(0)
  for (const duration of durations) {
    const index = bucketOf(duration)
    counts[index] = (counts[index] ?? 0) + 1
  }
  return counts
}

it('estimates quantiles within 10 %', () => {
  let seed = 1
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  for (let round = 0; round < 50; round += 1) {
    const scale = 10 ** (random() * 5 - 0.3)
    const durations = Array.from({ length: 1 + Math.floor(random() * 500) }, () => scale * (0.5 + random()))
    const sorted = [...durations].sort((one, other) => one - other)
    for (const fraction of [0.5, 0.99]) {
      const exact = sorted[Math.max(1, Math.ceil(sorted.length * fraction)) - 1] ?? 0
      const ratio = (quantileOf(sketchOf(durations), fraction) ?? 0) / exact
      expect(ratio).toBeGreaterThan(0.9)
      expect(ratio).toBeLessThan(1.1)
    }
  }
})

it('has a bucket for every duration', () => {
  for (const duration of [0, -1, 0.1, 0.25, 1e9, Number.MAX_VALUE]) {
    expect(bucketOf(duration)).toBeGreaterThanOrEqual(0)
    expect(bucketOf(duration)).toBeLessThan(sketchBuckets)
  }
})

it('has no quantile without values', () => {
  expect(quantileOf([], 0.5)).toBeUndefined()
})
