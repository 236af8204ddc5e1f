import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import { canonicalBody } from './canonical-json.ts'

function read(text: string): JsonText {
  const json = readJsonObject(text)
  if (json.kind !== 'object') throw new Error(`not an object: ${text}`)
  return json
}

/** The value with its members in another order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  )
}

/** Few names and values, so that equal bodies occur. */
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(0, 1, 1.5, true, null, '', 'a', '\u00e9', '\\u0061', 'model'),
    fc.array(tie('any'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', '1', '2', '__proto__', 'model', 'x y'), tie('any'), {
      maxKeys: 3,
    }),
  ),
})).any
const body = fc.dictionary(fc.constantFrom('a', 'b', 'messages', '7', '__proto__'), value, { maxKeys: 3 })

it('is equal for equal bodies only, whatever the order of their members', () => {
  fc.assert(
    fc.property(body, body, (one, other) => {
      const texts = [one, other].map((each) => JSON.stringify(each))
      const [first, second] = texts.map((text) => canonicalBody(read(text)))
      expect(first).toBe(canonicalBody(read(JSON.stringify(reversed(one), undefined, 1))))
      const [parsed, otherParsed] = texts.map((text) => read(text).value)
      expect(first === second).toBe(isDeepStrictEqual(parsed, otherParsed))
    }),
    { numRuns: 2_000 },
  )
})

it('omits the model of the request only', () => {
  expect(canonicalBody(read('{"model":"a","b":{"model":"c"}}'))).toBe('{"b":{"model":"c"}}')
})

it.each(['1234567890123456', '0.1234567890123456', '1e21', '1E-400', '12.5e+10'])(
  'does not exist for numbers that a double may round: %s',
  (number) => {
    expect(canonicalBody(read(`{"a":${number}}`))).toBeUndefined()
  },
)
