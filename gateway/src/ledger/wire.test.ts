import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ledgerEntries, ledgerEntry } from '../../test/fixtures/ledger.ts'
import { createCollapsed } from './collapse.ts'
import { decodeLines, encodeEntry, encodeSum } from './wire.ts'

it('reproduces entries and sums, with any characters', () => {
  fc.assert(
    fc.property(fc.array(ledgerEntries, { maxLength: 10 }), (entries) => {
      const collapsed = createCollapsed(100, 100)
      for (const entry of entries) collapsed.add(entry)
      const sums = collapsed.sums()
      const lines = [...entries.map(encodeEntry), ...sums.map(encodeSum)].join('')
      const { records, invalid } = decodeLines(Buffer.from(lines))
      expect(invalid).toBe(0)
      expect(records).toEqual([
        ...entries.map((entry) => ({ kind: 'entry', entry })),
        ...sums.map((sum) => ({ kind: 'sum', sum })),
      ])
    }),
  )
})

it.each([
  ['text', 'nonsense'],
  ['another object', '{"a":1}'],
  ['an entry without a status', JSON.stringify({ ...ledgerEntry(), status: undefined })],
  ['an entry with a fractional cost', JSON.stringify({ ...ledgerEntry(), costPicodollars: 0.5 })],
  ['a sum without counts', '{"sum":{"dimensions":{},"charges":[]}}'],
])('counts %s as invalid, and decodes the other lines', (_name, line) => {
  const entry = encodeEntry(ledgerEntry())
  const { records, invalid } = decodeLines(Buffer.from(`${entry}${line}\n${entry}`))
  expect(invalid).toBe(1)
  expect(records).toHaveLength(2)
})

it('never throws on any bytes', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void decodeLines(bytes)))
})
