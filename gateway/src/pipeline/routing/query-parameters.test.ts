import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseQuery } from './query-parameters.ts'

describe('parseQuery', () => {
  it.each([
    ['', {}],
    ['?', {}],
    ['?a=1&b=2', { a: '1', b: '2' }],
    ['?a=1&a=2', { a: '1' }],
    ['?a&b=', { a: '', b: '' }],
    ['?&&a=1&', { a: '1' }],
    ['?a%20b=c%2Bd+e', { 'a b': 'c+d e' }],
    ['?a=%zz&b=%', { a: '%zz', b: '%' }],
    ['?=x', { '': 'x' }],
    ['?a=b=c', { a: 'b=c' }],
    ['?__proto__=1', Object.fromEntries([['__proto__', '1']])],
  ])('reads %j', (query, parameters) => {
    expect(Object.fromEntries(parseQuery(query))).toEqual(parameters)
  })

  it('decodes encoded parameters, the first of repeated names', () => {
    const pairs = fc.array(
      fc.tuple(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string({ unit: 'grapheme' })),
    )
    fc.assert(
      fc.property(pairs, (list) => {
        const wellFormed = list.map(([name, value]) => [name.toWellFormed(), value.toWellFormed()])
        const first = new Map(wellFormed.toReversed().map(([name = '', value = '']) => [name, value]))
        const parsed = parseQuery(`?${new URLSearchParams(wellFormed)}`)
        expect(new Map([...parsed].toSorted())).toEqual(new Map([...first].toSorted()))
      }),
    )
  })
})
