import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStates, equalEnds, updateOrder } from './route-order.ts'

const ascending = (a: number, b: number) => a - b
const numbers = fc.uniqueArray(fc.nat(40), { maxLength: 20 })

describe('updateOrder', () => {
  it('has the order of a sort of the remaining and the added items', () => {
    fc.assert(
      fc.property(numbers, numbers, (before, after) => {
        const change = {
          isKept: (item: number) => after.includes(item),
          added: after.filter((item) => !before.includes(item)),
        }
        const found = updateOrder(before.toSorted(ascending), change, ascending)
        expect(found).toEqual(after.toSorted(ascending))
      }),
    )
  })
})

describe('equalEnds', () => {
  it('leaves the part of two lists that differs', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3)), fc.array(fc.nat(3)), (some, others) => {
        const [start, end] = equalEnds(some, others)
        const middle = others.slice(start, others.length - end)
        expect(start + end).toBeLessThanOrEqual(Math.min(some.length, others.length))
        expect([...some.slice(0, start), ...middle, ...some.slice(some.length - end)]).toEqual(others)
      }),
    )
  })
})

describe('createStates', () => {
  it('keeps the state of an object while it is present, and the list while nothing changes', () => {
    type Item = { key: string }
    const statesOf = createStates(
      (item: Item) => ({ item, pass: { last: 0 } }),
      (a, b) => (a.item.key < b.item.key ? -1 : 1),
    )
    const [a, b] = [{ key: 'a' }, { key: 'b' }]
    const both = new Map([
      ['b', b],
      ['a', a],
    ])
    const first = statesOf([both])
    expect(first.map(({ item }) => item)).toEqual([a, b])
    expect(statesOf([both])).toBe(first)
    expect(statesOf([new Map([['a', a]]), new Map()])).toEqual([first[0]])
    const again = statesOf([both])
    expect(again[0]).toBe(first[0])
    expect(again[1]).not.toBe(first[1])
  })
})
