// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to the environment, as users write
// them
import { expect, it } from 'vitest'
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
} from './dsl.ts'
import { jsonSchemaOf } from './json-schema.ts'

const doc = { doc: 'd' }
const reference = { type: 'string', pattern: '^\\$' }

function field(schema: Schema): unknown {
  const json = jsonSchemaOf(object({ field: schema }, { doc: '' }), { title: 't' })
  return 'properties' in json ? Object(json.properties).field : undefined
}

it('is a titled draft 7 schema with required and unknown keys', () => {
  expect(
    jsonSchemaOf(object({ a: string(doc), b: optional(string(doc)) }, { doc: 'All of it.' }), { title: 'T' }),
  ).toEqual({
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'T',
    description: 'All of it.',
    type: 'object',
    properties: { a: { type: 'string', description: 'd' }, b: { type: 'string', description: 'd' } },
    required: ['a'],
    additionalProperties: false,
  })
})

it('contains descriptions, examples, defaults, secrets and formats', () => {
  expect(field(duration({ doc: 'How long.', example: '10s', default: '5s' }))).toEqual({
    type: 'string',
    description: 'How long.',
    examples: ['10s'],
    default: '5s',
    'x-format': 'duration',
    pattern: expect.any(String),
  })
  expect(field(secret(doc))).toMatchObject({ writeOnly: true })
  expect(field(cel(doc, ['jwt']))).toMatchObject({ 'x-format': 'cel', 'x-roots': ['jwt'] })
})

it('accepts environment references for numbers, booleans and enumerations', () => {
  expect(field(port(doc))).toMatchObject({
    anyOf: [{ type: 'integer', minimum: 0, maximum: 65_535 }, reference],
  })
  expect(field(integer(doc))).toMatchObject({ anyOf: [{ type: 'integer' }, reference] })
  expect(field(number(doc))).toEqual({ description: 'd', anyOf: [{ type: 'number' }, reference] })
  expect(field(boolean(doc))).toMatchObject({ anyOf: [{ type: 'boolean' }, reference] })
  expect(field(enumeration(['a', 'b'], doc))).toMatchObject({ anyOf: [{ enum: ['a', 'b'] }, reference] })
})

it.each([
  [duration(doc), ['10s', '1h30m', '$WAIT', '1${UNIT}'], ['10', 'x', '-1s', '']],
  [hostPort(doc), ['a:1', '[::]:80', 'localhost:$PORT'], ['a', ':', '80']],
  [url(doc), ['http://a', 'https://a/b', '$URL'], ['a', 'ftp://a']],
])('approximates formats by patterns', (schema, good, bad) => {
  const pattern = new RegExp(String(Object(field(schema)).pattern))
  for (const text of good) expect(text).toMatch(pattern)
  for (const text of bad) expect(text).not.toMatch(pattern)
})

it('omits descriptive defaults, which an editor would insert', () => {
  expect(field(string({ doc: 'd', default: 'the name' }))).not.toHaveProperty('default')
  expect(field(list(string(doc), { doc: 'd', default: 'all' }))).not.toHaveProperty('default')
  expect(field(enumeration(['a', 'b'], { doc: 'd', default: 'a' }))).toHaveProperty('default', 'a')
})

it('requires exactly one of some keys', () => {
  expect(field(exactlyOne({ a: string(doc), b: string(doc) }, { c: string(doc) }, doc))).toMatchObject({
    required: ['c'],
    oneOf: [{ required: ['a'] }, { required: ['b'] }],
    additionalProperties: false,
  })
})

it('describes lists, maps, free objects and choices of shapes', () => {
  expect(field(list(string(doc), doc, { min: 1 }))).toMatchObject({
    type: 'array',
    minItems: 1,
    items: { type: 'string' },
  })
  expect(field(map(string(doc), doc))).toMatchObject({
    type: 'object',
    additionalProperties: { type: 'string' },
  })
  expect(field(jsonObject(doc))).toMatchObject({ type: 'object' })
  expect(field(anyOfShapes([string(doc), object({}, doc)], doc))).toMatchObject({
    anyOf: [{ type: 'string' }, { type: 'object' }],
  })
})

it('defines an object with several uses once, named after its field', () => {
  const shared = object({ rule: string({ doc: 'R.' }) }, { doc: 'Rules.' })
  const json = jsonSchemaOf(
    object(
      { rules: optional(shared), others: list(shared, { doc: 'O.' }), single: object({}, { doc: 'S.' }) },
      { doc: '' },
    ),
    { title: 't' },
  )
  expect(json).toMatchObject({
    properties: {
      rules: { $ref: '#/definitions/rules' },
      others: { items: { $ref: '#/definitions/rules' } },
      single: { type: 'object', description: 'S.' },
    },
    definitions: { rules: { properties: { rule: { type: 'string' } } } },
  })
  expect(Object.keys((json as { definitions: object }).definitions)).toEqual(['rules'])
})
