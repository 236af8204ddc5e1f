import { describe, expect, it } from 'vitest'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import { consume } from './bucket.ts'
import type { BucketReference } from './buckets.ts'
import { createKeyedBuckets, type KeyedBuckets } from './keyed-buckets.ts'

const rate = { capacity: 2, refill: 1, intervalMs: 1000, sinceMs: 0 }

function bucketsFor(maxKeys: number): KeyedBuckets {
  return createKeyedBuckets(createLocalMemory(), 'buckets', maxKeys)
}

/** Consumes units of a value, and returns its usage and reference. */
function use(
  buckets: KeyedBuckets,
  key: string | undefined,
  { units = 0, nowMs = 0 } = {},
): { used: number; reference: BucketReference } {
  buckets.select(key, rate)
  while (!buckets.lock(rate, nowMs)) buckets.makeRoom(nowMs)
  consume(buckets.bucket, rate, units)
  buckets.unlock()
  buckets.settle(nowMs)
  return { used: buckets.bucket.used, reference: buckets.reference() }
}

/** Values in storage. */
function valuesOf(buckets: KeyedBuckets): (string | undefined)[] {
  return [...buckets.positions()]
    .filter((position) => buckets.read(position) !== undefined)
    .map((position) => buckets.valueOf(position))
}

describe('keyed buckets', () => {
  it('count every value apart', () => {
    const buckets = bucketsFor(10)
    use(buckets, 'a', { units: 2 })
    expect(use(buckets, 'a', { nowMs: 1 }).used).toBe(2)
    expect(use(buckets, 'b', { nowMs: 1 }).used).toBe(0)
  })

  it('share one bucket among requests without a value', () => {
    const buckets = bucketsFor(10)
    use(buckets, undefined, { units: 1 })
    expect(use(buckets, undefined).used).toBe(1)
    expect(use(buckets, '').used).toBe(0)
  })

  it('share one overflow bucket among new values while none is full', () => {
    const buckets = bucketsFor(2)
    use(buckets, 'a', { units: 1 })
    use(buckets, 'b', { units: 1 })
    const overflow = use(buckets, 'c', { units: 2 })
    expect(use(buckets, 'd')).toEqual(overflow)
    expect(use(buckets, 'a').used).toBe(1)
    expect(buckets.size).toBe(2)
    expect(valuesOf(buckets)).toEqual([undefined, 'a', 'b'])
  })

  it('charge the overflow bucket even if the value has a bucket of its own since', () => {
    const buckets = bucketsFor(1)
    use(buckets, 'a', { units: 1 })
    const { reference } = use(buckets, 'b', { units: 0 })
    use(buckets, 'b', { nowMs: 1000 })
    buckets.charge(reference, 1, 1000)
    expect(use(buckets, 'b', { nowMs: 1000 }).used).toBe(0)
    use(buckets, 'b', { units: 1, nowMs: 1000 })
    expect(use(buckets, 'c', { nowMs: 1000 }).used).toBe(1)
  })

  it('never forget a bucket that is not full, however many values come', () => {
    const buckets = bucketsFor(50)
    use(buckets, 'victim', { units: 2 })
    for (let index = 0; index < 5_000; index++) use(buckets, `value ${index}`, { units: 1, nowMs: 500 })
    expect(use(buckets, 'victim', { nowMs: 999 }).used).toBe(2)
    expect(buckets.size).toBe(50)
  })

  it('forget full buckets to make room', () => {
    const buckets = bucketsFor(2)
    use(buckets, 'a', { units: 1 })
    use(buckets, 'b', { units: 1 })
    use(buckets, 'c', { nowMs: 1000 })
    expect(valuesOf(buckets)).toContain('c')
    expect(buckets.size).toBeLessThanOrEqual(2)
  })

  it('do not grow while old values go idle', () => {
    const buckets = bucketsFor(1_000_000)
    for (let index = 0; index < 20_000; index++) use(buckets, `value ${index}`, { units: 1, nowMs: index })
    // A value is used once and full again a second, hence a thousand values, later.
    expect(buckets.size).toBeLessThan(3_000)
  })

  it('charge the successor of an evicted bucket', () => {
    const buckets = bucketsFor(1)
    const early = use(buckets, 'a').reference
    use(buckets, 'b', { units: 1 })
    expect(valuesOf(buckets)).toEqual(['b'])
    buckets.charge(early, 1, 5000)
    expect(valuesOf(buckets)).toEqual(['a'])
    expect(use(buckets, 'a', { nowMs: 5000 }).used).toBe(1)
  })

  it('give back a unit, but not to the successor of an evicted bucket', () => {
    const buckets = bucketsFor(1)
    const early = use(buckets, 'a', { units: 2 }).reference
    buckets.giveBack(early, 0)
    expect(use(buckets, 'a').used).toBe(1)
    use(buckets, 'b', { units: 1, nowMs: 5000 })
    buckets.giveBack(early, 5000)
    expect(use(buckets, 'b', { nowMs: 5000 }).used).toBe(1)
  })

  it('bound the memory of long values and distinguish them', () => {
    const buckets = bucketsFor(10)
    const long = 'x'.repeat(10_000)
    use(buckets, `${long}1`, { units: 1 })
    expect(use(buckets, `${long}1`).used).toBe(1)
    expect(use(buckets, `${long}2`).used).toBe(0)
    expect(valuesOf(buckets)[0]?.length).toBeLessThan(64)
  })

  it('do not take a value that looks like a hash for the long value that has it', () => {
    const buckets = bucketsFor(10)
    use(buckets, 'x'.repeat(10_000), { units: 1 })
    const [key] = valuesOf(buckets)
    expect(key).toMatch(/^sha256:/)
    expect(use(buckets, key).used).toBe(0)
  })

  it('find values with any characters', () => {
    const buckets = bucketsFor(100)
    for (const part of ['é', '日本', '\ud800', '\ud801', '\ud800x', '\ufffd', '\u0000', 'ÿĀ']) {
      for (const key of [part, part.repeat(60)]) {
        expect(use(buckets, key, { units: 1 }).used).toBe(1)
        expect(use(buckets, key, { units: 1 }).used).toBe(2)
      }
    }
  })
})
