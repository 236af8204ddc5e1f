import { describe, expect, it } from 'vitest'
import {
  anyOfShapes,
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  hostPort,
  integer,
  jsonObject,
  list,
  map,
  number,
  object,
  optional,
  port,
  type Schema,
  secret,
  string,
  url,
} from '../../../../gateway/src/schema/dsl.ts'
import { jsonSchemaOf } from '../../../../gateway/src/schema/json-schema.ts'
import { matchOption, optionLabels } from './alternatives.ts'
import { blankValue } from './blank.ts'
import { checkValue } from './check.ts'
import { labelOf } from './label.ts'
import { type FormNode, readNode } from './node.ts'
import type { JsonSchema } from './schema.ts'
import { summaryOf } from './summary.ts'

const doc = { doc: 'Text of the documentation.' }

function schemaOf(field: Schema): JsonSchema {
  const whole = jsonSchemaOf(object({ field }, { doc: '' }), { title: 't' }) as JsonSchema
  return { ...whole.properties?.['field'], definitions: whole.definitions ?? {} }
}

function nodeOf(field: Schema): FormNode {
  const schema = schemaOf(field)
  return readNode(schema, schema.definitions ?? {})
}

function mistakes(field: Schema, value: unknown): readonly string[] {
  const schema = schemaOf(field)
  return checkValue(value, schema, schema.definitions ?? {}).map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')} ${message}`,
  )
}

describe('an input of a schema', () => {
  it.each<[string, Schema, object]>([
    ['text', string({ ...doc, example: 'abc' }), { kind: 'text', placeholder: 'abc', secret: false }],
    ['secret', secret(doc), { kind: 'text', secret: true }],
    [
      'duration',
      duration({ ...doc, default: '5s' }),
      { kind: 'text', format: 'duration', placeholder: '5s' },
    ],
    ['address', url(doc), { kind: 'text', format: 'url' }],
    ['host and port', hostPort(doc), { kind: 'text', format: 'host:port' }],
    ['expression', cel(doc, ['jwt']), { kind: 'text', format: 'cel', roots: ['jwt'] }],
    [
      'whole number',
      integer(doc, { min: 1, max: 9 }),
      { kind: 'number', integer: true, minimum: 1, maximum: 9, acceptsReference: true },
    ],
    ['number', number(doc), { kind: 'number', integer: false, acceptsText: false }],
    ['decimal', anyOfShapes([number(doc), string(doc)], doc), { kind: 'number', acceptsText: true }],
    ['port', port(doc), { kind: 'number', maximum: 65_535 }],
    [
      'switch',
      boolean({ ...doc, default: true }),
      { kind: 'boolean', defaultValue: true, acceptsReference: true },
    ],
    ['choice', enumeration(['a', 'b'], doc), { kind: 'choice', values: ['a', 'b'], acceptsReference: true }],
    [
      'choice or number',
      anyOfShapes([enumeration(['auto'], doc), integer(doc, { min: 1 })], doc),
      { kind: 'choice', number: { minimum: 1 } },
    ],
    ['list', list(string(doc), doc, { min: 1 }), { kind: 'list', minItems: 1 }],
    ['map', map(string(doc), doc), { kind: 'map' }],
    ['free object', jsonObject(doc), { kind: 'json' }],
    ['alternatives', anyOfShapes([string(doc), object({}, doc)], doc), { kind: 'alternatives' }],
  ])('is a %s', (_, schema, expected) => {
    expect(nodeOf(schema)).toMatchObject({ ...expected, description: doc.doc })
  })

  it('separates required, optional and exclusive fields', () => {
    const node = nodeOf(
      exactlyOne(
        { one: string(doc), two: object({}, doc) },
        { name: string(doc), more: optional(string({ ...doc, advanced: true })) },
        doc,
      ),
    )
    expect(node).toMatchObject({ kind: 'object', oneOf: ['one', 'two'] })
    const fields = node.kind === 'object' ? node.fields : []
    expect(fields.map(({ name, required, advanced }) => [name, required, advanced])).toEqual(
      expect.arrayContaining([
        ['name', true, false],
        ['more', false, true],
        ['one', false, false],
      ]),
    )
  })

  it('follows references to definitions', () => {
    const shared = object({ rule: string(doc) }, doc)
    const schema = schemaOf(object({ a: shared, b: shared }, doc))
    expect(schema.properties?.['a']?.$ref).toBeDefined()
    expect(readNode(schema.properties?.['a'] ?? {}, schema.definitions ?? {})).toMatchObject({
      kind: 'object',
      fields: [{ name: 'rule' }],
    })
  })
})

describe('a value', () => {
  it.each<[string, Schema, unknown, readonly string[]]>([
    ['of the right form', object({ a: string(doc), b: integer(doc) }, doc), { a: 'x', b: 2 }, []],
    ['with a reference', object({ b: port(doc) }, doc), { b: '$PORT' }, []],
    ['with unknown members', object({}, doc), { other: 1 }, []],
    ['with a stored secret', object({ key: secret(doc) }, doc), { key: '***' }, []],
    ['with a missing field', object({ a: string(doc) }, doc), {}, ['a is required']],
    ['with a wrong number', integer(doc, { min: 1, max: 3 }), 9, ['must be at most 3']],
    ['with a fraction', integer(doc), 1.5, ['must be a whole number']],
    ['with a text for a number', number(doc), '12px', ['must be a number']],
    ['with a wrong duration', duration(doc), '10', ['must be a duration such as 500ms, 10s or 1h30m']],
    ['with a wrong address', url(doc), 'example.com', ['must start with http:// or https://']],
    ['with an unknown choice', enumeration(['a', 'b'], doc), 'c', ['must be one of a, b']],
    [
      'with both variants',
      exactlyOne({ a: string(doc), b: string(doc) }, {}, doc),
      { a: '', b: '' },
      ['must have exactly one of A, B'],
    ],
    ['with few items', list(string(doc), doc, { min: 1 }), [], ['must have at least 1 item']],
    ['with a wrong item', list(integer(doc), doc), [1, 'x'], ['1 must be a whole number']],
    ['with a wrong entry', map(boolean(doc), doc), { a: 1 }, ['a must be on or off']],
  ])('%s is checked', (_, schema, value, expected) => {
    expect(mistakes(schema, value)).toEqual(expected)
  })

  it('fits the alternative with its form', () => {
    const schema = schemaOf(
      anyOfShapes(
        [
          string(doc),
          object({ file: string(doc) }, doc),
          exactlyOne({ url: string(doc), inline: string(doc) }, {}, doc),
          jsonObject(doc),
        ],
        doc,
      ),
    )
    const options = schema.anyOf ?? []
    const index = (value: unknown) => matchOption(value, options, {})
    expect([undefined, 'a', { file: 'a' }, { inline: 'a' }, { x: 1 }, 5].map(index)).toEqual([
      0, 0, 1, 2, 3, -1,
    ])
    expect(optionLabels(options, {})).toEqual(['Text', 'File', 'URL / inline', 'Document'])
  })

  it('starts with required objects and lists, without texts', () => {
    const schema = schemaOf(
      object(
        { name: string(doc), items: list(string(doc), doc), inner: object({ a: string(doc) }, doc) },
        doc,
      ),
    )
    expect(blankValue(schema, {})).toEqual({ items: [], inner: {} })
  })
})

it.each([
  ['baseUrl', 'Base URL'],
  ['apiKey', 'API key'],
  ['jwtAuth', 'JWT auth'],
  ['localRateLimit', 'Local rate limit'],
  ['x-custom', 'x-custom'],
  ['mcpAuthentication', 'MCP authentication'],
])('the field %s has the label %s', (name, label) => {
  expect(labelOf(name)).toBe(label)
})

it.each([
  [{ name: 'a', x: 1 }, 'a'],
  [{ requests: 5, unit: 'Minutes' }, 'Requests 5'],
  [{ mcp: { host: 'h' } }, 'MCP h'],
  ['text', 'text'],
  [undefined, undefined],
])('%j has the summary %s', (value, summary) => {
  expect(summaryOf(value)).toBe(summary)
})
