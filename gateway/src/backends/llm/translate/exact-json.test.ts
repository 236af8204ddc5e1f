import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createNestingScan,
  parseExactJson,
  parseExactObject,
  parseNestedObject,
  withExactNumbers,
} from './exact-json.ts'

describe('parseExactJson', () => {
  it.each([
    '{"id":12345678901234567890}',
    '{"id":-9007199254740993,"list":[18446744073709551615]}',
    '{"price":0.12345678901234567890123}',
    '{"text":"1234567890123456789","small":1}',
  ])('round-trips %s unchanged', (text) => {
    expect(JSON.stringify(parseExactJson(text))).toBe(text)
  })

  it('equals JSON.parse without long numbers', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.stringify(parseExactJson(text))).toBe(JSON.stringify(JSON.parse(text)))
      }),
    )
  })

  it.each(['', '{', '{"a":}', 'nope'])('is undefined for %j', (text) => {
    expect(parseExactJson(text)).toBeUndefined()
  })

  it('rejects nesting beyond the limit of serialization', () => {
    expect(parseExactJson('['.repeat(100_000) + ']'.repeat(100_000))).toBeUndefined()
  })

  it('ignores brackets in strings', () => {
    const text = JSON.stringify(['[\\"{'.repeat(1000)])
    expect(JSON.stringify(parseExactJson(text))).toBe(text)
  })

  it.each([
    [500, true],
    [501, false],
  ])('of %i levels is accepted: %s', (levels, isAccepted) => {
    const text = `${'{"a":['.repeat(levels / 2)}${levels % 2 === 1 ? '[]' : ''}${']}'.repeat(levels / 2)}`
    expect(parseExactJson(text) !== undefined).toBe(isAccepted)
  })

  it('accepts only objects for an object', () => {
    expect(parseExactObject('[1]')).toBeUndefined()
    expect(parseExactObject('null')).toBeUndefined()
    expect(parseExactObject('{"a":1}')).toEqual({ a: 1 })
  })
})

describe('withExactNumbers', () => {
  it('is the object that was read, unless its text may have numbers that it has rounded', () => {
    const small = { text: '{"n":1234.5}', value: { n: 1234.5 }, kind: 'object' } as const
    expect(withExactNumbers(small)).toBe(small.value)
    const text = '{"n":12345678901234567890}'
    const rounded = withExactNumbers({ kind: 'object', text, value: { n: Number('12345678901234567890') } })
    expect(JSON.stringify(rounded)).toBe(text)
  })
})

describe('createNestingScan', () => {
  it('completes at the last bracket for any split into fragments', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const text = JSON.stringify(value)
        const scan = createNestingScan()
        for (const character of text.slice(0, -1)) scan.push(character)
        expect(scan.complete).toBe(false)
        scan.push(text.slice(-1))
        expect(scan.complete).toBe(true)
      }),
    )
  })
})

describe('JSON in a client string', () => {
  it('has separate limits', () => {
    expect(parseNestedObject('{"a":12345678901234567890}')).toMatchObject({ a: expect.anything() })
    expect(parseNestedObject(`{"a":[${'{},'.repeat(100_001)}1]}`)).toBeUndefined()
    expect(parseNestedObject(`{"a":"${'x'.repeat(4 * 1024 * 1024)}"}`)).toBeUndefined()
  })
})
