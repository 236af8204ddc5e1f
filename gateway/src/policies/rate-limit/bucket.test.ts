import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  consume,
  createBucket,
  isFull,
  type Rate,
  refillBucket,
  returnUnit,
  secondsToRefill,
  usedAt,
} from './bucket.ts'

const perMinute: Rate = { capacity: 15, refill: 10, intervalMs: 60_000 }

describe('bucket', () => {
  it('starts full', () => {
    const bucket = createBucket(500)
    expect(bucket.used).toBe(0)
    expect(isFull(bucket, perMinute, 500)).toBe(true)
  })

  it('refills by its base, once per interval since it began', () => {
    const bucket = createBucket(500)
    consume(bucket, perMinute, 15)
    refillBucket(bucket, perMinute, 60_499)
    expect(bucket.used).toBe(15)
    refillBucket(bucket, perMinute, 60_500)
    expect(bucket.used).toBe(5)
    refillBucket(bucket, perMinute, 120_500)
    expect(bucket.used).toBe(0)
  })

  it('reports usage at any time including due refills', () => {
    fc.assert(
      fc.property(fc.nat(20), fc.nat(300_000), fc.integer({ min: 1, max: 20 }), (used, waitMs, capacity) => {
        const rate = { capacity, refill: Math.min(capacity, 3), intervalMs: 7_000 }
        const bucket = { ...createBucket(500), used }
        const told = usedAt(bucket, rate, 500 + waitMs)
        expect(bucket).toEqual({ ...createBucket(500), used })
        refillBucket(bucket, rate, 500 + waitMs)
        expect(told).toBe(bucket.used)
      }),
    )
  })

  it('adds up the intervals it was not looked at', () => {
    const bucket = createBucket(0)
    consume(bucket, { ...perMinute, capacity: 100 }, 100)
    refillBucket(bucket, { ...perMinute, capacity: 100 }, 3 * 60_000 + 1)
    expect(bucket).toMatchObject({ used: 70, refilledAt: 180_000 })
  })

  it('caps usage at its capacity', () => {
    const bucket = createBucket(0)
    consume(bucket, perMinute, 1_000_000)
    refillBucket(bucket, perMinute, 60_000)
    expect(perMinute.capacity - bucket.used).toBe(10)
  })

  it('retains usage when its capacity changes', () => {
    const bucket = createBucket(0)
    consume(bucket, perMinute, 8)
    refillBucket(bucket, { capacity: 5, refill: 5, intervalMs: 60_000 }, 1)
    expect(bucket.used).toBe(5)
    refillBucket(bucket, { capacity: 100, refill: 5, intervalMs: 60_000 }, 2)
    expect(bucket.used).toBe(5)
  })

  it('gives a unit back, unless a refill has come in between', () => {
    const bucket = createBucket(0)
    consume(bucket, perMinute, 3)
    returnUnit(bucket, 10)
    expect(bucket.used).toBe(2)
    consume(bucket, perMinute, 10)
    refillBucket(bucket, perMinute, 60_000)
    returnUnit(bucket, 10)
    expect(bucket.used).toBe(2)
  })

  it('ignores a clock that goes back', () => {
    const bucket = createBucket(1_000)
    consume(bucket, perMinute, 3)
    refillBucket(bucket, perMinute, 0)
    expect(bucket).toMatchObject({ used: 3, refilledAt: 1_000 })
  })

  it('has capacity after the reported seconds at any rate', () => {
    fc.assert(
      fc.property(
        fc.record({
          refill: fc.integer({ min: 1, max: 1000 }),
          burst: fc.integer({ min: 0, max: 1000 }),
          intervalMs: fc.integer({ min: 1, max: 10_000_000 }),
          began: fc.nat(),
          later: fc.nat(),
        }),
        ({ refill, burst, intervalMs, began, later }) => {
          const rate = { capacity: refill + burst, refill, intervalMs }
          const bucket = createBucket(began)
          refillBucket(bucket, rate, began + later)
          consume(bucket, rate, rate.capacity)
          const seconds = secondsToRefill(bucket, rate, began + later)
          expect(seconds).toBeGreaterThanOrEqual(1)
          refillBucket(bucket, rate, began + later + seconds * 1000)
          expect(bucket.used).toBeLessThan(rate.capacity)
        },
      ),
    )
  })

  it('is full exactly when refilling leaves nothing used', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(400_000), (used, later) => {
        const rate = { capacity: 100, refill: 10, intervalMs: 60_000 }
        const bucket = createBucket(0)
        consume(bucket, rate, used)
        const full = isFull(bucket, rate, later)
        refillBucket(bucket, rate, later)
        expect(full).toBe(bucket.used === 0)
      }),
    )
  })
})
