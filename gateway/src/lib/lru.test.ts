import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLru } from './lru.ts'

describe('the bounded map', () => {
  it('evicts the least recently used entry', () => {
    const lru = createLru<string, number>(2)
    lru.set('a', 1)
    lru.set('b', 2)
    expect(lru.get('a')).toBe(1)
    lru.set('c', 3)
    expect([lru.get('a'), lru.get('b'), lru.get('c')]).toEqual([1, undefined, 3])
  })

  it('replaces a value without eviction', () => {
    const lru = createLru<string, number>(2)
    lru.set('a', 1)
    lru.set('b', 2)
    lru.set('a', 9)
    expect([lru.get('a'), lru.get('b'), lru.size]).toEqual([9, 2, 2])
    lru.delete('a')
    expect([lru.get('a'), lru.size]).toEqual([undefined, 1])
  })

  it('never exceeds its capacity, and contains the latest entries', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20)), fc.integer({ min: 1, max: 8 }), (keys, capacity) => {
        const lru = createLru<number, number>(capacity)
        for (const key of keys) {
          lru.set(key, key)
          expect(lru.get(key)).toBe(key)
          expect(lru.size).toBeLessThanOrEqual(capacity)
        }
      }),
    )
  })
})
