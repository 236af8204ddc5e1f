import { describe, expect, it } from 'vitest'
import { consume } from './bucket.ts'
import { createKeyedBuckets } from './keyed-buckets.ts'

const rate = { capacity: 2, refill: 1, intervalMs: 1000 }

describe('keyed buckets', () => {
  it('count every value apart', () => {
    const buckets = createKeyedBuckets(10)
    consume(buckets.find('a', rate, 0), rate, 2)
    expect(buckets.find('a', rate, 1).used).toBe(2)
    expect(buckets.find('b', rate, 1).used).toBe(0)
  })

  it('share one bucket among requests without a value', () => {
    const buckets = createKeyedBuckets(10)
    consume(buckets.find(undefined, rate, 0), rate, 1)
    expect(buckets.find(undefined, rate, 0).used).toBe(1)
    expect(buckets.find('', rate, 0).used).toBe(0)
  })

  it('share one overflow bucket among new values while none is full', () => {
    const buckets = createKeyedBuckets(2)
    consume(buckets.find('a', rate, 0), rate, 1)
    consume(buckets.find('b', rate, 0), rate, 1)
    const overflow = buckets.find('c', rate, 0)
    consume(overflow, rate, 2)
    expect(buckets.find('d', rate, 0)).toBe(overflow)
    expect(buckets.find('a', rate, 0).used).toBe(1)
    expect(buckets.size).toBe(2)
  })

  it('never forget a bucket that is not full, however many values come', () => {
    const buckets = createKeyedBuckets(50)
    consume(buckets.find('victim', rate, 0), rate, 2)
    for (let index = 0; index < 5_000; index++) consume(buckets.find(`value ${index}`, rate, 500), rate, 1)
    expect(buckets.find('victim', rate, 999).used).toBe(2)
    expect(buckets.size).toBe(50)
  })

  it('forget full buckets to make room', () => {
    const buckets = createKeyedBuckets(2)
    consume(buckets.find('a', rate, 0), rate, 1)
    consume(buckets.find('b', rate, 0), rate, 1)
    const created = buckets.find('c', rate, 1000)
    expect(created.key).toBe('c')
    expect(buckets.size).toBeLessThanOrEqual(2)
  })

  it('do not grow while old values go idle', () => {
    const buckets = createKeyedBuckets(1_000_000)
    for (let index = 0; index < 20_000; index++) {
      consume(buckets.find(`value ${index}`, rate, index), rate, 1)
    }
    // A value is used once and full again a second, hence a thousand values, later.
    expect(buckets.size).toBeLessThan(3_000)
  })

  it('charge the successor of an evicted bucket', () => {
    const buckets = createKeyedBuckets(1)
    const early = buckets.find('a', rate, 0)
    consume(buckets.find('b', rate, 0), rate, 1)
    expect(early.evicted).toBe(true)
    const successor = buckets.current(early, rate, 5000)
    consume(successor, rate, 1)
    expect(buckets.find('a', rate, 5000).used).toBe(1)
  })

  it('bound the memory of long values and distinguish them', () => {
    const buckets = createKeyedBuckets(10)
    const long = 'x'.repeat(10_000)
    consume(buckets.find(`${long}1`, rate, 0), rate, 1)
    expect(buckets.find(`${long}1`, rate, 0).used).toBe(1)
    expect(buckets.find(`${long}2`, rate, 0).used).toBe(0)
    expect(buckets.find(`${long}1`, rate, 0).key.length).toBeLessThan(64)
  })

  it('do not take a value that looks like a hash for the long value that has it', () => {
    const buckets = createKeyedBuckets(10)
    const long = buckets.find('x'.repeat(10_000), rate, 0)
    consume(long, rate, 1)
    expect(buckets.find(long.key, rate, 0).used).toBe(0)
  })

  it('find values with any characters', () => {
    const buckets = createKeyedBuckets(10)
    for (const key of ['é', '日本', '\ud800', '\ud800x', '\u0000', 'ÿĀ']) {
      consume(buckets.find(key, rate, 0), rate, 1)
      expect(buckets.find(key, rate, 0).used).toBe(1)
    }
  })
})
