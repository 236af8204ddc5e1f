import fc from 'fast-check'
import { expect, it } from 'vitest'
import { amountsOf, ledgerEntries, ledgerEntry } from '../../test/fixtures/ledger.ts'
import { createCollapsed } from './collapse.ts'

it('retains amounts and charges, at any limit and over several steps', () => {
  const limits = fc.record({
    maxSums: fc.integer({ min: 1, max: 20 }),
    maxCharges: fc.integer({ min: 1, max: 20 }),
  })
  fc.assert(
    fc.property(fc.array(ledgerEntries, { maxLength: 30 }), limits, (entries, { maxSums, maxCharges }) => {
      const first = createCollapsed(maxSums, maxCharges)
      const second = createCollapsed(maxSums, maxCharges)
      for (const entry of entries) first.add(entry)
      for (const sum of first.sums()) second.addSum(sum)
      const expected = amountsOf({ entries, sums: [] }, false)
      expect(amountsOf({ entries: [], sums: first.sums() }, false)).toEqual(expected)
      expect(amountsOf({ entries: [], sums: second.sums() }, false)).toEqual(expected)
      const amounts = second.sums().flatMap(({ charges }) => charges.map(({ amount }) => amount))
      expect(amounts.every(Number.isSafeInteger)).toBe(true)
    }),
  )
})

it('retains the charges of each value below the limit', () => {
  fc.assert(
    fc.property(fc.array(ledgerEntries, { maxLength: 30 }), (entries) => {
      const collapsed = createCollapsed(1_000, 1_000)
      for (const entry of entries) collapsed.add(entry)
      expect(amountsOf({ entries: [], sums: collapsed.sums() })).toEqual(amountsOf({ entries, sums: [] }))
    }),
  )
})

it('bounds the number of sums, whatever keys and users appear', () => {
  const collapsed = createCollapsed(10, 10)
  for (let index = 0; index < 1_000; index += 1) {
    const charge = { budget: 'llm/a', value: `v${index}`, windowStart: 0, windowEnd: 1, amount: 1 }
    collapsed.add(ledgerEntry({ keyId: `key-${index}`, charges: [charge] }))
  }
  expect(collapsed.size()).toBe(11)
  const charges = collapsed.sums().flatMap((sum) => sum.charges)
  expect(charges).toHaveLength(11)
  expect(charges.find(({ value }) => value === '(other)')).toMatchObject({ amount: 990 })
})
