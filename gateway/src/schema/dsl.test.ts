import { expect, it } from 'vitest'
import {
  anyOfShapes,
  exactlyOne,
  type Infer,
  integer,
  name,
  object,
  optional,
  secretSource,
  string,
} from './dsl.ts'

const limit = exactlyOne(
  { requests: integer({ doc: 'r' }), tokens: integer({ doc: 't' }) },
  { unit: name({ doc: 'u' }), burst: optional(integer({ doc: 'b' })) },
  { doc: 'limit' },
)

it('narrows exactlyOne by the present key', () => {
  const value: Infer<typeof limit> = limit.parse({ requests: 3, unit: 'Seconds' })
  const total: number = value.requests !== undefined ? value.requests : value.tokens
  expect(total + (value.burst ?? 0)).toBe(3)
})

it('accepts one variant with common fields and refuses none and two', () => {
  expect(limit.safeParse({ tokens: 1, unit: 'x', burst: 4 }).success).toBe(true)
  expect(limit.safeParse({ unit: 'x' }).success).toBe(false)
  expect(limit.safeParse({ requests: 1, tokens: 1, unit: 'x' }).success).toBe(false)
})

it('accepts an inline secret or a file', () => {
  const source = secretSource({ doc: 'key' })
  expect(source.parse('abc')).toBe('abc')
  expect(source.parse({ file: '/run/key' })).toEqual({ file: '/run/key' })
  expect(source.safeParse({ file: '/run/key', value: 'x' }).success).toBe(false)
})

it('types anyOfShapes as the union of its shapes', () => {
  const rule = anyOfShapes([string({ doc: 's' }), object({ deny: string({ doc: 'd' }) }, { doc: 'o' })], {
    doc: 'rule',
  })
  const value: Infer<typeof rule> = rule.parse({ deny: 'true' })
  expect(typeof value === 'string' ? value : value.deny).toBe('true')
})
