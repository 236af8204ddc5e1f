import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bucketMap, lookUp, withEntries } from './bucket-map.ts'

describe('a bucket map', () => {
  it('equals a plain map after any changes, and does not modify earlier versions', () => {
    const key = fc.oneof(fc.constantFrom('', 'a', '__proto__'), fc.uuid(), fc.string({ maxLength: 3 }))
    const changes = fc.array(fc.array(fc.tuple(key, fc.option(fc.integer(), { nil: undefined }))))
    fc.assert(
      fc.property(changes, (rounds) => {
        let map = bucketMap<number>()
        const plain = new Map<string, number>()
        for (const round of rounds) {
          const before = map
          const was = round.map(([key]) => lookUp(before, key))
          map = withEntries(map, round)
          expect(round.map(([key]) => lookUp(before, key))).toEqual(was)
          for (const [key, value] of round) {
            if (value === undefined) plain.delete(key)
            else plain.set(key, value)
          }
          expect(map.size).toBe(plain.size)
          for (const [key] of round) expect(lookUp(map, key)).toBe(plain.get(key))
        }
      }),
    )
  })

  it('spreads ids evenly', () => {
    const ids = Array.from({ length: 20_000 }, () => crypto.randomUUID())
    const { buckets } = bucketMap(ids.map((id) => [id, true]))
    expect(Math.max(...buckets.map(({ size }) => size))).toBeLessThan(80)
  })
})
