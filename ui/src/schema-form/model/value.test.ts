import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { sameJson, valueAt, withItemMoved, withMember, withValueAt } from './value.ts'

const json = fc.jsonValue({ maxDepth: 4 })

it('an edit retains order and unknown members of all objects on its way', () => {
  const before = { b: 1, unknown: { x: [1, { y: 2 }] }, a: { inner: 'old', other: null } }
  const after = withValueAt(before, ['a', 'inner'], 'new')
  expect(JSON.stringify(after)).toBe('{"b":1,"unknown":{"x":[1,{"y":2}]},"a":{"inner":"new","other":null}}')
  expect((after as typeof before).unknown).toBe(before.unknown)
})

it('a removed member leaves no trace, a removed item no gap', () => {
  expect(withValueAt({ a: { b: 1 } }, ['a', 'b'], undefined)).toEqual({ a: {} })
  expect(withValueAt({ a: [1, 2, 3] }, ['a', 1], undefined)).toEqual({ a: [1, 3] })
})

it('objects on the way to a value are created', () => {
  expect(withValueAt(undefined, ['a', 'b', 0, 'c'], 1)).toEqual({ a: { b: [{ c: 1 }] } })
})

it('a member named like the prototype is an ordinary member', () => {
  const value = withMember(JSON.parse('{"__proto__":{"a":1}}'), '__proto__', 5)
  expect(JSON.stringify(value)).toBe('{"__proto__":5}')
})

it('a value that is set again is the same', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), json, { minKeys: 1 }), fc.nat(), (value, seed) => {
      const names = Object.keys(value)
      const name = names[seed % names.length] ?? ''
      const next = withValueAt(value, [name], valueAt(value, [name]))
      expect(JSON.stringify(next)).toBe(JSON.stringify(value))
      expect(sameJson(next, value)).toBe(true)
    }),
  )
})

it('equality ignores the order of members alone', () => {
  expect(sameJson({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true)
  expect(sameJson([1, 2], [2, 1])).toBe(false)
  expect(sameJson({ a: undefined }, {})).toBe(false)
  expect(sameJson({}, [])).toBe(false)
})

it('a moved item arrives at its place', () => {
  expect(withItemMoved(['a', 'b', 'c'], 0, 2)).toEqual(['b', 'c', 'a'])
  expect(withItemMoved(['a', 'b', 'c'], 2, 0)).toEqual(['c', 'a', 'b'])
  expect(withItemMoved(['a'], 3, 0)).toEqual(['a'])
})
