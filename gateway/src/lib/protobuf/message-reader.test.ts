import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type FieldValue, readMessage } from './message-reader.ts'
import { createMessageWriter } from './message-writer.ts'

type Read = [field: number, value: unknown]

function fieldsOf(bytes: Uint8Array, read: (value: FieldValue) => unknown): Read[] {
  const found: Read[] = []
  readMessage(bytes, (field, value) => found.push([field, read(value)]))
  return found
}

it('encodes the example of the specification', () => {
  const writer = createMessageWriter()
  writer.integer(1, 150)
  writer.text(2, 'testing')
  expect(Buffer.from(writer.finish()).toString('hex')).toBe('089601120774657374696e67')
})

it('omits default values, and writes empty nested messages', () => {
  const writer = createMessageWriter()
  writer.text(1, '')
  writer.integer(2, 0)
  writer.boolean(3, false)
  writer.begin(4)
  writer.end()
  expect([...writer.finish()]).toEqual([0x22, 0])
})

it('returns the texts, at every nesting and length, that were written', () => {
  const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }), { maxLength: 5 })
  fc.assert(
    fc.property(texts, fc.nat(6), (values, depth) => {
      const writer = createMessageWriter()
      for (let level = 0; level < depth; level += 1) writer.begin(9)
      for (const value of values) writer.text(3, value)
      for (let level = 0; level < depth; level += 1) writer.end()
      let bytes = writer.finish()
      for (let level = 0; level < depth; level += 1) {
        const nested = fieldsOf(bytes, (value) => value.bytes())
        expect(nested.map(([field]) => field)).toEqual([9])
        bytes = nested[0]?.[1] as Uint8Array
      }
      expect(fieldsOf(bytes, (value) => value.text())).toEqual(values.map((value) => [3, value]))
    }),
  )
})

it('returns integers and doubles that were written', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.double({ noNaN: true }), (integer, double) => {
      const writer = createMessageWriter()
      writer.integer(1, integer)
      writer.double(2, double)
      const found: unknown[] = []
      readMessage(writer.finish(), (field, value) =>
        found.push(field === 1 ? value.integer() : value.double()),
      )
      expect(found).toEqual(integer === 0 ? [double] : [integer, double])
    }),
  )
})

it('starts each message anew, after large ones, too', () => {
  const writer = createMessageWriter()
  writer.bytes(1, new Uint8Array(200_000))
  expect(writer.finish()).toHaveLength(200_004)
  writer.text(1, 'a')
  expect([...writer.finish()]).toEqual([10, 1, 97])
})

it.each([
  ['a truncated varint', '08ff'],
  ['a truncated text', '0a05616263'],
  ['a huge length', '0affffffff0f'],
  ['a varint of eleven bytes', `08${'ff'.repeat(10)}01`],
  ['a group', '0b0c'],
  ['field 0', '0001'],
  ['a truncated double', '0900000000'],
])('refuses %s', (_, hex) => {
  expect(() => readMessage(Buffer.from(hex, 'hex'), () => {})).toThrow(RangeError)
})

it('reads any bytes without other errors', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        readMessage(bytes, () => {})
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError)
      }
    }),
  )
})

it('refuses the value of another type', () => {
  const writer = createMessageWriter()
  writer.integer(1, 5)
  const bytes = writer.finish()
  expect(() => fieldsOf(bytes, (value) => value.text())).toThrow(/wire type/)
  expect(() => fieldsOf(bytes, (value) => value.double())).toThrow(/wire type/)
})
