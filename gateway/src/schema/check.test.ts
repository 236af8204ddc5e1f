import { expect, it } from 'vitest'
import { check } from './check.ts'
import {
  anyOfShapes,
  duration,
  enumeration,
  exactlyOne,
  hostPort,
  integer,
  jsonObject,
  list,
  map,
  name,
  number,
  object,
  optional,
  port,
  type Schema,
  secret,
  secretSource,
  string,
  url,
} from './dsl.ts'
import { formatPath } from './path.ts'

const doc = { doc: 'x' }

function mistakesOf(schema: Schema, value: unknown): string[] {
  const result = check(schema, value)
  return result.kind === 'valid'
    ? []
    : result.mistakes.map(({ path, message }) => `${formatPath(path)}: ${message}`)
}

const bucket = exactlyOne(
  { requests: integer(doc, { min: 1 }), tokens: integer(doc, { min: 1 }) },
  { unit: enumeration(['Seconds', 'Minutes', 'Hours'], doc), burst: optional(integer(doc)) },
  doc,
)
const refill = object(
  {
    type: optional(enumeration(['requests', 'tokens'], doc)),
    maxTokens: integer(doc),
    tokensPerFill: integer(doc),
    fillInterval: duration(doc),
  },
  doc,
)
const limit = anyOfShapes([bucket, refill], doc)

it('reports the expected and the actual value', () => {
  const schema = object(
    { a: number(doc), b: string(doc), c: integer(doc), d: list(string(doc), doc), e: map(string(doc), doc) },
    doc,
  )
  expect(mistakesOf(schema, { a: 'abc', b: 5, c: 1.5, d: 'x', e: [] })).toEqual([
    'a: expected a number, got the string "abc"',
    'b: expected a string, got the number 5; put it in quotes',
    'c: expected a whole number, got the number 1.5',
    'd: expected a list, got a string',
    'e: expected an object, got a list',
  ])
})

it('reports a missing field with its expected value', () => {
  expect(mistakesOf(object({ models: list(string(doc), doc) }, doc), {})).toEqual([
    'models: is required: a list',
  ])
})

it('suggests the nearest known key', () => {
  const schema = object({ models: list(string(doc), doc), port: port(doc) }, doc)
  expect(mistakesOf(schema, { modles: [], models: [], port: 1 })).toEqual([
    'modles: unknown key `modles`, did you mean `models`?',
  ])
  expect(mistakesOf(schema, { models: [], port: 1, zebra: 1 })).toEqual([
    'zebra: unknown key `zebra`; known here: models, port',
  ])
})

it('reports every mistake in one run', () => {
  const schema = object({ a: object({ b: integer(doc) }, doc), c: list(integer(doc), doc) }, doc)
  expect(mistakesOf(schema, { a: { b: 'x', z: 1 }, c: [1, 'y', true] })).toHaveLength(4)
})

it('reports both keys if exactly one is allowed', () => {
  expect(mistakesOf(bucket, { requests: 1, tokens: 2, unit: 'Hours' })).toEqual([
    ': exactly one of requests, tokens is allowed here; found both requests and tokens',
  ])
  expect(mistakesOf(bucket, { unit: 'Hours' })).toEqual([
    ': exactly one of requests, tokens is required here; found none',
  ])
})

it('reports two keys of exactlyOne together with other mistakes of the object', () => {
  expect(mistakesOf(list(bucket, doc), [{ requests: 1.5, tokens: 'a', unit: 'Weeks' }])).toEqual([
    '[0].unit: expected one of Seconds, Minutes, Hours, got the string "Weeks"',
    '[0].requests: expected a whole number, got the number 1.5',
    '[0].tokens: expected a whole number, got the string "a"',
    '[0]: exactly one of requests, tokens is allowed here; found both requests and tokens',
  ])
})

it('reports a mistake against the shape that the value is closest to', () => {
  expect(mistakesOf(limit, { maxTokens: 1, tokensPerFill: 'a', fillInterval: '1s' })).toEqual([
    'tokensPerFill: expected a whole number, got the string "a"',
  ])
  expect(mistakesOf(limit, { requests: 1, tokens: 2, unit: 'Hours' })).toEqual([
    ': exactly one of requests, tokens is allowed here; found both requests and tokens',
  ])
  expect(mistakesOf(limit, { requests: 1, unit: 'Hours', burts: 1 })).toEqual([
    'burts: unknown key `burts`, did you mean `burst`?',
  ])
  expect(mistakesOf(limit, 5)).toEqual([': expected an object, got a number'])
})

it('joins the alternatives if the kind of a value matches none', () => {
  const rule = anyOfShapes([string(doc), object({ deny: string(doc) }, doc)], doc)
  expect(mistakesOf(list(rule, doc), [5, { deny: 1 }, { alow: 'x', deny: 'y' }])).toEqual([
    '[0]: expected a string or an object, got a number; put it in quotes',
    '[1].deny: expected a string, got the number 1; put it in quotes',
    '[2].alow: unknown key `alow`; known here: deny',
  ])
})

it('suggests the nearest value of an enumeration', () => {
  expect(mistakesOf(bucket, { requests: 1, unit: 'seconds' })).toEqual([
    'unit: expected one of Seconds, Minutes, Hours, got the string "seconds", did you mean Seconds?',
  ])
})

it('describes formats and ranges', () => {
  const schema = object({ d: duration(doc), h: hostPort(doc), u: url(doc), p: port(doc), n: name(doc) }, doc)
  expect(mistakesOf(schema, { d: '10', h: 'localhost', u: 'ftp://x', p: 70_000, n: '' })).toEqual([
    'd: expected a duration such as 500ms, 10s or 1h30m, got the string "10"',
    'h: expected host:port, such as 127.0.0.1:8080 or [::1]:8080, got the string "localhost"',
    'u: expected an address that starts with http:// or https://, got the string "ftp://x"',
    'p: expected at most 65535, got the number 70000',
    'n: must not be empty',
  ])
})

it('omits values of secret fields, and text in place of an object', () => {
  const schema = object(
    {
      key: secret(doc),
      source: secretSource(doc),
      headers: map(secret(doc), doc),
      keys: list(object({ key: secret(doc) }, doc), doc),
    },
    doc,
  )
  const value = { key: 918273, source: 918273, headers: { a: 918273 }, keys: ['918273'] }
  const text = mistakesOf(schema, value).join('\n')
  expect(text.split('\n')).toHaveLength(4)
  expect(text).not.toContain('918273')
})

it('does not change JSON without a schema', () => {
  const value = { overrides: { seed: 1, nested: [{ a: null }] } }
  expect(check(object({ overrides: jsonObject(doc) }, doc), value)).toEqual({ kind: 'valid', value })
})

it('uses no terms of the schema library', () => {
  const schema = object({ l: list(limit, doc), k: secretSource(doc), m: map(integer(doc), doc) }, doc)
  for (const wrong of [
    null,
    1,
    'x',
    [],
    {},
    { l: [null, 1, [], {}], k: [], m: { a: null } },
    { l: {}, k: {}, m: [] },
  ]) {
    const text = mistakesOf(schema, wrong).join('\n')
    expect(text).not.toBe('')
    expect(text).not.toMatch(/invalid input|received|undefined|record|NaN|unrecognized/i)
  }
})

it('masks the credentials in a URL', () => {
  const [mistake] = mistakesOf(url(doc), 'ftp://user:pa55@host/path')
  expect(mistake).toContain('ftp://***@host/path')
  expect(mistake).not.toContain('pa55')
})
