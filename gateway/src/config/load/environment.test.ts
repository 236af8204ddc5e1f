// biome-ignore-all lint/suspicious/noTemplateCurlyInString: environment references
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { expandReferences } from './environment.ts'

const env = { NAME: 'value', EMPTY: '', A1_: 'x', '1': 'one', NESTED: '$NAME' }

it.each([
  ['$NAME', 'value'],
  ['${NAME}', 'value'],
  ['a${NAME}b$NAME-c', 'avaluebvalue-c'],
  ['${NAME:-other}', 'value'],
  ['${UNSET:-other}', 'other'],
  ['${UNSET:-}', ''],
  ['${EMPTY:-other}', ''],
  ['$EMPTY', ''],
  ['$A1_.b', 'x.b'],
  ['$1', 'one'],
  ['$NESTED', '$NAME'],
  ['$$NAME', '$NAME'],
  ['$$$NAME', '$value'],
  ['pa$$word', 'pa$word'],
  ['cost $ 5', 'cost $ 5'],
  ['^foo$', '^foo$'],
  ['a$|b$', 'a$|b$'],
  ['${NAME', '${NAME'],
  ['${}', '${}'],
  ['', ''],
])('expands %s to %s', (text, expected) => {
  expect(expandReferences(text, env)).toMatchObject({ text: expected, missing: [] })
})

it('names each unset variable once', () => {
  expect(expandReferences('$X ${Y} $X $NAME', env).missing).toEqual([
    { name: 'X', reference: '$X' },
    { name: 'Y', reference: '${Y}' },
  ])
})

it('ignores inherited properties of the environment', () => {
  expect(expandReferences('$constructor', env).missing).toEqual([
    { name: 'constructor', reference: '$constructor' },
  ])
})

it.each([
  ['$NAME', true],
  ['${UNSET:-1}', true],
  ['$$', false],
  ['$NAME ', false],
  ['$NAME$NAME', false],
  ['NAME', false],
])('reports whether %s is a single reference', (text, whole) => {
  expect(expandReferences(text, env).whole).toBe(whole)
})

it('unescapes a text whose dollar signs are all doubled', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('$', '{', '}', 'A', ':', '-', ' ') }), (text) => {
      expect(expandReferences(text.replaceAll('$', '$$$$'), {})).toMatchObject({ text, missing: [] })
    }),
  )
})
