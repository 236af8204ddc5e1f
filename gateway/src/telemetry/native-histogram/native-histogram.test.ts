import { expect, it } from 'vitest'
import {
  addNative,
  countNative,
  createNativeCounts,
  type NativeCounts,
  sortedBuckets,
} from './native-histogram.ts'

function counted(values: readonly number[]): NativeCounts {
  const counts = createNativeCounts()
  for (const value of values) countNative(counts, value)
  return counts
}

function expectWithin(counts: NativeCounts, values: readonly number[]): void {
  const boundary = (index: number) => 2 ** (index / 2 ** counts.schema)
  for (const [index, count] of sortedBuckets(counts)) {
    const inside = values.filter(
      (value) => value > boundary(index - 1) * (1 + 1e-12) && value <= boundary(index) * (1 + 1e-12),
    )
    expect(count).toBe(inside.length)
  }
}

it('a power of two is in the bucket below its boundary', () => {
  expect(sortedBuckets(counted([0.5, 1, 1.01, 2, 2.01]))).toEqual([
    [-8, 1],
    [0, 1],
    [1, 1],
    [8, 1],
    [9, 1],
  ])
})

it('zero, negative values and NaN are in the bucket of zero, and infinity is in the last one', () => {
  const counts = counted([0, -1, Number.NaN, 2 ** -128, Number.POSITIVE_INFINITY])
  expect(counts.zero).toBe(4)
  expect(sortedBuckets(counts)).toEqual([[8192, 1]])
})

it('neighbours are united beyond the limit of buckets, without loss', () => {
  const values = Array.from({ length: 2000 }, (_, index) => 1.017 ** (index - 1000))
  const counts = counted(values)
  expect(counts.buckets.size).toBeLessThanOrEqual(160)
  expect(counts.schema).toBeLessThan(3)
  expect([...counts.buckets.values()].reduce((sum, count) => sum + count, 0)).toBe(2000)
  expectWithin(counts, values)
})

it('the sum of histograms equals the histogram of all values', () => {
  const narrow = Array.from({ length: 50 }, (_, index) => 0.01 * (index + 1))
  const wide = Array.from({ length: 400 }, (_, index) => 1.3 ** (index - 200))
  for (const [one, other] of [
    [narrow, wide],
    [wide, narrow],
    [narrow, narrow],
  ] as const) {
    const [first, second] = [counted(one), counted(other)]
    const before = structuredClone([first, second])
    const sum = addNative(first, second)
    expect([first, second]).toEqual(before)
    expect(sum && sortedBuckets(sum)).toEqual(sortedBuckets(counted([...one, ...other])))
  }
})
