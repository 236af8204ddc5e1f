import { describe, expect, it } from 'vitest'
import {
  anyOfShapes,
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  integer,
  jsonObject,
  list,
  map,
  name,
  number,
  object,
  optional,
  type Schema,
  string,
  url,
} from '../../schema/dsl.ts'
import { shapeOf } from '../../schema/shape.ts'
import { structuralSchema } from './structural.ts'

const doc = { doc: '' }
const convert = (schema: Schema, count?: number) => structuralSchema(shapeOf(schema), count)

describe('structuralSchema', () => {
  it.each<[string, Schema, object]>([
    ['a string', string(doc), { type: 'string', maxLength: 16_384 }],
    ['a name', name(doc, { max: 63 }), { type: 'string', minLength: 1, maxLength: 63 }],
    ['an expression', cel(doc), { type: 'string', maxLength: 16_384 }],
    ['a bounded integer', integer(doc, { min: 1, max: 9 }), { type: 'integer', minimum: 1, maximum: 9 }],
    ['a number', number(doc), { type: 'number' }],
    ['a boolean', boolean(doc), { type: 'boolean' }],
    ['an enumeration', enumeration(['A', 'B'], doc), { type: 'string', enum: ['A', 'B'] }],
    ['free JSON', jsonObject(doc), { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
    [
      'a map',
      map(boolean(doc), doc),
      { type: 'object', maxProperties: 64, additionalProperties: { type: 'boolean' } },
    ],
    [
      'a list',
      list(boolean(doc), doc, { min: 1, max: 5 }),
      {
        type: 'array',
        'x-kubernetes-list-type': 'atomic',
        minItems: 1,
        maxItems: 5,
        items: { type: 'boolean' },
      },
    ],
    [
      'an object',
      object({ a: boolean(doc), b: optional(boolean(doc)) }, doc),
      { type: 'object', required: ['a'], properties: { a: { type: 'boolean' }, b: { type: 'boolean' } } },
    ],
    [
      'a union of an integer and a string',
      anyOfShapes([integer(doc), string(doc)], doc),
      { 'x-kubernetes-int-or-string': true },
    ],
    [
      'a union of a string and a list',
      anyOfShapes([string(doc), list(string(doc), doc)], doc),
      { 'x-kubernetes-preserve-unknown-fields': true },
    ],
    [
      'a union of enumerations',
      anyOfShapes([enumeration(['A'], doc), enumeration(['B'], doc)], doc),
      { type: 'string', enum: ['A', 'B'] },
    ],
    [
      'a union of objects',
      anyOfShapes([object({ a: boolean(doc), b: boolean(doc) }, doc), object({ a: boolean(doc) }, doc)], doc),
      { type: 'object', required: ['a'], properties: { a: { type: 'boolean' }, b: { type: 'boolean' } } },
    ],
  ])('converts %s', (_, schema, expected) => {
    expect(convert(schema)).toEqual(expected)
  })

  it('adds documentation and the default to the description', () => {
    expect(convert(boolean({ doc: 'A switch.', default: false }))).toEqual({
      description: 'A switch. Default: false.',
      type: 'boolean',
    })
  })

  it('demands exactly one key of a choice, with reserved names escaped', () => {
    expect(convert(exactlyOne({ if: boolean(doc), 'a-b': boolean(doc) }, {}, doc))).toMatchObject({
      'x-kubernetes-validations': [
        {
          rule: '[has(self.__if__), has(self.a__dash__b)].filter(x, x).size() == 1',
          message: 'exactly one of if, a-b is required',
        },
      ],
    })
  })

  it('demands exactly one key without a rule where a rule does not see the keys', () => {
    const free = anyOfShapes([string(doc), list(string(doc), doc)], doc)
    const schema = convert(exactlyOne({ a: free, b: boolean(doc) }, {}, doc))
    expect(schema).toMatchObject({ oneOf: [{ required: ['a'] }, { required: ['b'] }] })
    expect(schema).not.toHaveProperty('x-kubernetes-validations')
  })

  it('checks formats with a message', () => {
    expect(convert(url(doc))).toMatchObject({
      maxLength: 2_048,
      'x-kubernetes-validations': [{ message: 'must be a URL that starts with http:// or https://' }],
    })
  })

  it('replaces rules by keywords above their cost', () => {
    const crowded = convert(list(list(list(duration(doc), doc), doc), doc))
    expect(JSON.stringify(crowded)).toContain('"pattern"')
    expect(JSON.stringify(crowded)).not.toContain('x-kubernetes-validations')
    expect(convert(exactlyOne({ a: boolean(doc), b: boolean(doc) }, {}, doc), 100_000)).toHaveProperty(
      'oneOf',
    )
  })
})
