import { describe, expect, it } from 'vitest'
import { parsePointer, splitFields, withDefault, withField } from './field-pointers.ts'

describe('parsePointer', () => {
  it('reads names and their escapes', () => {
    expect(parsePointer('/a/b~1c/~0d')).toEqual(['a', 'b/c', '~d'])
  })

  it.each(['/', '/a//b', '/a/', '/a~2', '/~'])('rejects %s', (pointer) => {
    expect(parsePointer(pointer)).toBeUndefined()
  })
})

describe('withField', () => {
  it('sets nested fields, and replaces other values on the way', () => {
    expect(withField({ a: { b: 1 } }, ['a', 'c'], 2)).toEqual({ a: { b: 1, c: 2 } })
    expect(withField({ a: 'text' }, ['a', 'c', 'd'], 2)).toEqual({ a: { c: { d: 2 } } })
    expect(withField({}, ['toString', 'c'], 2)).toEqual({ toString: { c: 2 } })
  })
})

describe('withDefault', () => {
  it('sets absent fields only', () => {
    expect(withDefault({ a: { b: 1 } }, ['a', 'c'], 2)).toEqual({ a: { b: 1, c: 2 } })
    for (const object of [{ a: { c: null } }, { a: 'text' }, { a: null }]) {
      expect(withDefault(object, ['a', 'c'], 2)).toBe(object)
    }
  })
})

describe('splitFields', () => {
  it('separates paths from names', () => {
    expect(splitFields({ a: 1, '/b': 2, '/c/d': 3 })).toEqual({
      plain: { a: 1, b: 2 },
      nested: [{ path: ['c', 'd'], value: 3, withinPresent: false }],
    })
  })

  it('merges a path below a plain override into it', () => {
    expect(splitFields({ a: { x: 1 }, '/a/y': 2 })).toEqual({ plain: { a: { x: 1, y: 2 } }, nested: [] })
  })

  it('applies a path below a plain default also to the field of the client', () => {
    expect(splitFields({ a: { x: 1 }, '/a/y': 2 }, 'defaults')).toEqual({
      plain: { a: { x: 1, y: 2 } },
      nested: [{ path: ['a', 'y'], value: 2, withinPresent: true }],
    })
  })
})
