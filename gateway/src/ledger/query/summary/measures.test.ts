import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ledgerEntry } from '../../../../test/fixtures/ledger.ts'
import { createCollapsed } from '../../collapse.ts'
import { percentileOf } from './measures.ts'

it('percentiles differ from the exact ones by a factor of 3 at most, from 1 ms to 2 minutes', () => {
  const durations = fc.array(fc.double({ min: 1, max: 120_000, noNaN: true }), {
    minLength: 1,
    maxLength: 200,
  })
  fc.assert(
    fc.property(durations, fc.constantFrom(0.5, 0.95, 0.99), (list, share) => {
      const collapsed = createCollapsed(1, 1)
      for (const durationMs of list) collapsed.add(ledgerEntry({ durationMs }))
      const [sum] = collapsed.sums()
      const exact = list.toSorted((one, other) => one - other)[Math.ceil(share * list.length) - 1] ?? 0
      const ratio = (percentileOf(sum?.counts.durations ?? [], share) ?? 0) / exact
      expect(ratio).toBeGreaterThan(1 / 3.01)
      expect(ratio).toBeLessThan(3.01)
    }),
  )
})

it('a percentile of no requests is absent', () => {
  expect(percentileOf([0, 0], 0.5)).toBeUndefined()
})
