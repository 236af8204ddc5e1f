import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editJson, editString, itemTexts } from './json-edit.ts'

const upper = editString((text) => text.toUpperCase())

describe('an edit inside JSON', () => {
  it('changes the value at its path and no other byte', () => {
    const text = '{ "a" : [ {"n":"x", "big":12345678901234567890}, {"n" :"y"} ] , "n":"z" }'
    expect(editJson(text, ['a', '*', 'n'], upper)).toBe(
      '{ "a" : [{"n":"X", "big":12345678901234567890},{"n" :"Y"}] , "n":"z" }',
    )
  })

  it('returns the same text where there is nothing to change', () => {
    for (const text of ['{}', '{"a":{}}', '{"a":[1,null,"x"]}', '{"a":"b"}', '{"a":[{"n":"X"}]}']) {
      expect(editJson(text, ['a', '*', 'n'], upper)).toBe(text)
    }
  })

  it('leaves items out', () => {
    const text = '{"a":[{"n":1},{"n":2},{"n":3}]}'
    expect(editJson(text, ['a', '*'], (item) => (item.includes('2') ? undefined : item))).toBe(
      '{"a":[{"n":1},{"n":3}]}',
    )
    expect(editJson(text, ['a', '*'], () => undefined)).toBe('{"a":[]}')
  })

  it('agrees with editing the value', () => {
    fc.assert(
      fc.property(fc.array(fc.dictionary(fc.string(), fc.json())), fc.string(), (items, key) => {
        const clean = JSON.parse(JSON.stringify(items).replaceAll('__proto__', 'proto'))
        const name = key.replaceAll('__proto__', 'proto')
        const text = JSON.stringify({ a: clean })
        const edited = JSON.parse(editJson(text, ['a', '*', name], upper))
        const expected = clean.map((item: Record<string, string>) =>
          Object.fromEntries(Object.entries(item).map(([k, v]) => [k, k === name ? v.toUpperCase() : v])),
        )
        expect(edited).toEqual({ a: expected })
      }),
    )
  })

  it('refuses text that could be read in two ways', () => {
    expect(() => editJson('{"a":{"n":"x","n":"y"}}', ['a', 'n'], upper)).toThrow('occurs twice')
  })
})

describe('the items of an array', () => {
  it('are the texts that the array is made of', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 2), (values, indent) => {
        const items = itemTexts(JSON.stringify(values, null, indent))
        expect(items.map((item) => JSON.parse(item))).toEqual(JSON.parse(JSON.stringify(values)))
      }),
    )
  })
})
