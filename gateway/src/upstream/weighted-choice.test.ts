import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseWeighted } from './weighted-choice.ts'

const weights = fc.array(fc.nat({ max: 1_000_000 }), { maxLength: 8 })
const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

function itemsOf(list: readonly number[]) {
  return list.map((weight, index) => ({ weight, index }))
}

describe('chooseWeighted', () => {
  it('chooses the item whose share of the interval contains the random number', () => {
    fc.assert(
      fc.property(weights, fraction, (list, random) => {
        const total = list.reduce((sum, weight) => sum + weight, 0)
        const expected = list.findIndex(
          (_, index) => random * total < list.slice(0, index + 1).reduce((sum, weight) => sum + weight, 0),
        )
        expect(chooseWeighted(itemsOf(list), random)?.index).toBe(expected < 0 ? undefined : expected)
      }),
    )
  })

  it('distributes a uniform sequence in exact proportion to the weights', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 50 }), { minLength: 1, maxLength: 6 }), (list) => {
        const total = list.reduce((sum, weight) => sum + weight, 0)
        const counts = list.map(() => 0)
        for (let step = 0; step < total; step += 1) {
          const index = chooseWeighted(itemsOf(list), (step + 0.5) / total)?.index ?? -1
          counts[index] = (counts[index] ?? 0) + 1
        }
        expect(counts).toEqual(list)
      }),
    )
  })

  it('never chooses an item of weight 0', () => {
    fc.assert(
      fc.property(weights, fraction, (list, random) => {
        expect(chooseWeighted(itemsOf(list), random)?.weight).not.toBe(0)
      }),
    )
  })

  it('returns undefined without a positive weight', () => {
    expect(chooseWeighted([], 0.5)).toBeUndefined()
    expect(chooseWeighted([{ weight: 0 }], 0.5)).toBeUndefined()
  })

  it('chooses an item for every random number below 1 despite rounding', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.1, max: 1, noNaN: true }), { minLength: 1, maxLength: 9 }),
        (list) => {
          expect(chooseWeighted(itemsOf(list), 1 - Number.EPSILON / 2)).toBeDefined()
        },
      ),
    )
  })

  it('chooses the last positive weight if rounding exceeds the sum', () => {
    expect(chooseWeighted(itemsOf([1, 2, 0]), 1)?.index).toBe(1)
  })
})
