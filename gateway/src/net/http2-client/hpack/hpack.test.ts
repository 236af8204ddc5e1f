import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHeaderDecoder } from './hpack.ts'
import { encodeFields } from './literals.ts'
import type { HeaderField } from './static-table.ts'

const limit = 64 * 1024
const bytes = (hex: string) => Buffer.from(hex.replaceAll(/\s/g, ''), 'hex')

/** Responses of RFC 7541 Appendix C.5 and C.6, with a table of 256 bytes, so that fields are evicted. */
const smallTable = '3fe101'
const responses: Record<string, readonly [string, string, string]> = {
  'without Huffman codes': [
    `4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a
     2f2f7777772e6578616d706c652e636f6d`,
    '4803333037c1c0bf',
    `88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b4851
     4b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31`,
  ],
  'with Huffman codes': [
    '488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3',
    '4883640effc1c0bf',
    `88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af270
     87f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007`,
  ],
}
const date = (second: number): HeaderField => ['date', `Mon, 21 Oct 2013 20:13:${second} GMT`]
const location: HeaderField = ['location', 'https://www.example.com']
const expected: HeaderField[][] = [
  [[':status', '302'], ['cache-control', 'private'], date(21), location],
  [[':status', '307'], ['cache-control', 'private'], date(21), location],
  [
    [':status', '200'],
    ['cache-control', 'private'],
    date(22),
    location,
    ['content-encoding', 'gzip'],
    ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
  ],
]

describe('header blocks', () => {
  it.each(Object.entries(responses))('of RFC 7541 are decoded %s', (_, blocks) => {
    const decoder = createHeaderDecoder(limit)
    const [first, ...rest] = blocks
    expect([smallTable + first, ...rest].map((block) => decoder.decode(bytes(block)))).toEqual(expected)
  })

  it('are decoded to the encoded fields', () => {
    const text = fc.string({
      unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
    })
    const known = fc.constantFrom(':method', 'te', 'content-type', 'x-team', 'authorization')
    fc.assert(
      fc.property(fc.array(fc.tuple(known, text)), (fields) => {
        expect(createHeaderDecoder(limit).decode(encodeFields(fields))).toEqual(fields)
      }),
    )
  })

  it('over the limit have no fields, and change the table', () => {
    const decoder = createHeaderDecoder(100)
    // x: y with incremental indexing, then the field so often that the list is too large.
    expect(decoder.decode(bytes(`400178 0179 ${'be'.repeat(100)}`))).toBeUndefined()
    expect(decoder.decode(bytes('be'))).toEqual([['x', 'y']])
  })

  it.each([
    ['an index without a field', 'bf'],
    ['index 0', '80'],
    ['a string beyond the end', '400178 05 61'],
    ['an integer beyond the end', 'ff'],
    ['a large integer', 'ffffffffffff7f'],
    ['a table above the setting', '3fe21f'],
    ['a change of the table behind a field', '88 20'],
    ['padding that is not ones', '400178 81 18'],
    ['padding of a byte', '400178 82 1fff'],
    ['the end of the string as a symbol', '400178 84 ffffffff'],
  ])('with %s are refused', (_, block) => {
    expect(() => createHeaderDecoder(limit).decode(bytes(block))).toThrow(RangeError)
  })

  it('of random bytes end in fields or an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (block) => {
        try {
          createHeaderDecoder(limit).decode(block)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }),
    )
  })
})
