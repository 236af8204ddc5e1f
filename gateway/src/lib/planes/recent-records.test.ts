import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { linkMemory } from '../../../test/support/linked-peers.ts'
import { createRecentRecords, type RecentRecords } from './recent-records.ts'

const { clock } = fixtureContext()

function setUp(maxRecords: number): RecentRecords[] {
  return linkMemory(3).map((memory) =>
    createRecentRecords(memory, { name: 'records', maxRecords, size: 2 }, clock),
  )
}

/** Adds 1 to the second number of a record; returns the sum. */
function increment(records: RecentRecords | undefined, key: string): number | undefined {
  clock.advance(1)
  return records?.update(key, (numbers, from) => {
    numbers[from + 1] = (numbers[from + 1] ?? 0) + 1
    return numbers[from + 1]
  })
}

function read(records: RecentRecords | undefined, key: string): number | undefined {
  return records?.find(key, (numbers, from) => numbers[from + 1])
}

describe('recent records', () => {
  it('are the same on all data planes', () => {
    const key = fc.oneof(fc.nat(9).map(String), fc.string({ maxLength: 100 }), fc.constant('\ud800'))
    const step = fc.record({ plane: fc.nat(2), key })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const planes = setUp(1_000)
        const counts = new Map<string, number>()
        for (const { plane, key: used } of steps) {
          const expected = (counts.get(used) ?? 0) + 1
          counts.set(used, expected)
          expect(increment(planes[plane], used)).toBe(expected)
        }
        for (const [used, expected] of counts) expect(read(planes[0], used)).toBe(expected)
      }),
      { numRuns: 30 },
    )
  })

  it('replace the one unused for the longest time, and begin with zeros', () => {
    const [a, b] = setUp(3)
    for (const key of ['x', 'y', 'z', 'x']) increment(a, key)
    expect(increment(b, 'new')).toBe(1)
    expect(['x', 'y', 'z', 'new'].map((key) => read(a, key))).toEqual([2, undefined, 1, 1])
  })

  it('replace old ones among many', () => {
    const [a, b] = setUp(1_000)
    for (let key = 0; key < 2_000; key += 1) increment(key % 2 === 0 ? a : b, `${key}`)
    const recent = Array.from({ length: 200 }, (_, index) => read(a, `${1_999 - index}`))
    expect(recent.filter((count) => count === 1).length).toBeGreaterThan(180)
  })
})
