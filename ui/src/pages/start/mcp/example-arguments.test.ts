import { expect, it } from 'vitest'
import { exampleOf } from './example-arguments.ts'

it('creates required members with defaults and first values', () => {
  const schema = {
    type: 'object',
    properties: {
      city: { type: 'string' },
      unit: { enum: ['C', 'F'] },
      days: { type: 'integer', minimum: 1 },
      tags: { type: 'array', items: { type: 'string', default: 'a' } },
      optional: { type: 'string' },
    },
    required: ['city', 'unit', 'days', 'tags'],
  }
  expect(exampleOf(schema)).toEqual({ city: '', unit: 'C', days: 1, tags: ['a'] })
})

it.each([undefined, null, 1, {}, { type: 'object' }])(
  'creates an empty object for the schema %j',
  (schema) => {
    expect(exampleOf(schema)).toEqual({})
  },
)
