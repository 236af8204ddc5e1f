import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodeRecord, findRecords } from './record-format.ts'

const payload = fc.uint8Array({ maxLength: 40 })

function fileOf(payloads: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    payloads.map((bytes, index) => encodeRecord({ first: index + 1, number: index + 1, rows: 1 }, bytes)),
  )
}

function contents(file: Buffer): Buffer[] {
  return findRecords(file).records.map(({ offset, bytes }) => file.subarray(offset, offset + bytes))
}

it('finds all records with their numbers', () => {
  const file = Buffer.concat([
    encodeRecord({ first: 1, number: 3, rows: 7 }, Buffer.from('one')),
    encodeRecord({ first: 4, number: 4, rows: 1 }, Buffer.alloc(0)),
  ])
  expect(findRecords(file)).toEqual({
    records: [
      { first: 1, number: 3, rows: 7, offset: 32, bytes: 3 },
      { first: 4, number: 4, rows: 1, offset: 67, bytes: 0 },
    ],
    damaged: 0,
  })
})

it('finds the complete records of a file that ends anywhere, without damage', () => {
  fc.assert(
    fc.property(fc.array(payload, { maxLength: 6 }), (payloads) => {
      const file = fileOf(payloads)
      for (let end = 0; end <= file.length; end += 1) {
        const found = findRecords(file.subarray(0, end))
        const complete = payloads.filter((_, index) => fileOf(payloads.slice(0, index + 1)).length <= end)
        expect(found.records).toHaveLength(complete.length)
        expect(found.damaged).toBe(0)
      }
    }),
    { numRuns: 30 },
  )
})

it('finds every record but the one with a flipped bit', () => {
  const payloads = fc.array(payload, { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(payloads, fc.nat(), fc.nat(7), (all, place, bit) => {
      const file = fileOf(all)
      const at = place % file.length
      file[at] = (file[at] ?? 0) ^ (1 << bit)
      const damaged = all.findIndex((_, index) => at < fileOf(all.slice(0, index + 1)).length)
      const expected = all.filter((_, index) => index !== damaged).map((bytes) => Buffer.from(bytes))
      expect(contents(file)).toEqual(expected)
      expect(findRecords(file).damaged).toBe(damaged === all.length - 1 ? 0 : 1)
    }),
    { numRuns: 300 },
  )
})

it('finds no records in other content', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(findRecords(Buffer.from(bytes)).records).toEqual([])
    }),
  )
})
