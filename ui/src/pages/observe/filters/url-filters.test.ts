import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { filterFields } from './fields.ts'
import {
  apiFilters,
  describeFilter,
  type Filter,
  readFilters,
  requestsAddress,
  withFilter,
  withoutFilter,
} from './url-filters.ts'

const anyFilter: fc.Arbitrary<Filter> = fc
  .constantFrom(...filterFields)
  .chain((field): fc.Arbitrary<Filter> => {
    if (field.kind === 'flag') return fc.boolean().map((value) => ({ kind: 'flag', field, value }))
    if (field.kind === 'number')
      return fc.oneof(
        fc
          .array(fc.nat().map(String), { minLength: 1, maxLength: 4 })
          .map((values): Filter => ({ kind: 'values', field, values })),
        fc
          .record({ min: fc.nat(), max: fc.nat() })
          .map((range): Filter => ({ kind: 'range', field, ...range })),
        fc.nat().map((min): Filter => ({ kind: 'range', field, min })),
      )
    return fc.oneof(
      fc
        .array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 4 })
        .map((values): Filter => ({ kind: 'values', field, values })),
      fc
        .string({ unit: 'grapheme', minLength: 1 })
        .map((text): Filter => ({ kind: 'contains', field, text })),
    )
  })

describe('filters of an address', () => {
  it('are read as they were written, and others remain', () => {
    fc.assert(
      fc.property(anyFilter, (filter) => {
        const written = withFilter(new URLSearchParams('range=7d&cursor=x'), filter)
        const read = readFilters(new URLSearchParams(written.toString()))
        expect(read).toEqual([filter])
        expect(written.get('range')).toBe('7d')
        expect(written.has('cursor')).toBe(false)
        expect(readFilters(withoutFilter(written, filter.field.name))).toEqual([])
        expect(describeFilter(filter)).toContain(filter.field.label)
      }),
    )
  })

  it('skip invalid values', () => {
    const parameters = new URLSearchParams('status=abc&streaming=maybe&durationMs.min=&unknown=1&user~=')
    expect(readFilters(parameters)).toEqual([])
  })

  it('become conditions of the API', () => {
    const parameters = new URLSearchParams(
      'status=429&status=500&user=&path~=chat&durationMs.min=100&streaming=false&keyName=7',
    )
    expect(apiFilters(readFilters(parameters), 'x')).toEqual({
      status: [429, 500],
      user: [null],
      path: { contains: 'chat' },
      durationMs: { min: 100 },
      streaming: false,
      keyName: ['7'],
      text: 'x',
    })
  })
})

it('requestsAddress has values of known fields', () => {
  expect(requestsAddress({ user: 'a b', provider: null, nothing: 'x' }, { range: '7d' })).toBe(
    '/requests?range=7d&user=a+b&provider=',
  )
})
