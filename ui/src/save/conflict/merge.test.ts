import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { sameJson } from '../../schema-form/model/value.ts'
import { mergeValues, resolveMerge } from './merge.ts'

it('changes of different fields fit together', () => {
  const merge = mergeValues(
    { a: 1, b: { c: 1, d: 1 } },
    { a: 2, b: { c: 1, d: 1 } },
    { a: 1, b: { c: 1, d: 2 }, e: 1 },
  )
  expect(merge).toEqual({
    value: { a: 2, b: { c: 1, d: 2 }, e: 1 },
    conflicts: [],
    adopted: [['b'], ['e']],
  })
})

it('a removed field stays removed', () => {
  expect(mergeValues({ a: 1, b: 1 }, { b: 1 }, { a: 1, b: 2 }).value).toEqual({ b: 2 })
})

it('a field that both changed is a conflict, and either side can be chosen', () => {
  const merge = mergeValues({ a: 1, l: [1] }, { a: 2, l: [1, 2] }, { a: 3, l: [0, 1] })
  expect(merge.conflicts.map(({ path }) => path)).toEqual([['a'], ['l']])
  expect(resolveMerge(merge, ['mine', 'theirs'])).toEqual({ a: 2, l: [0, 1] })
  expect(resolveMerge(merge, ['theirs', 'mine'])).toEqual({ a: 3, l: [1, 2] })
})

it('a change against a removal is a conflict', () => {
  const merge = mergeValues({ a: { b: 1 } }, {}, { a: { b: 2 } })
  expect(merge.conflicts).toEqual([{ path: ['a'], base: { b: 1 }, mine: undefined, theirs: { b: 2 } }])
  expect(resolveMerge(merge, ['theirs'])).toEqual({ a: { b: 2 } })
})

const object = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.oneof(fc.nat(2), fc.dictionary(fc.constantFrom('x', 'y'), fc.nat(2))),
)

it('one-sided changes are never lost', () => {
  fc.assert(
    fc.property(object, object, (base, changed) => {
      expect(sameJson(mergeValues(base, changed, base).value, changed)).toBe(true)
      expect(sameJson(mergeValues(base, base, changed).value, changed)).toBe(true)
      expect(mergeValues(base, changed, changed).conflicts).toEqual([])
    }),
  )
})

it('the result is theirs if every conflict and every own change yields', () => {
  fc.assert(
    fc.property(object, object, object, (base, mine, theirs) => {
      const merge = mergeValues(base, mine, theirs)
      const result = resolveMerge(
        merge,
        merge.conflicts.map(() => 'theirs'),
      ) as Record<string, unknown>
      for (const name of ['a', 'b', 'c'])
        if (sameJson(base[name], mine[name])) expect(sameJson(result[name], theirs[name])).toBe(true)
    }),
  )
})
