import { describe, expect, it } from 'vitest'
import { blankValue } from '../../../../schema-form/model/blank.ts'
import { checkValue } from '../../../../schema-form/model/check.ts'
import { defaultsOf, formSchemaOf } from './tool-schema.ts'

describe('the form of a tool', () => {
  it('has the fields of its schema, without patterns', () => {
    const schema = formSchemaOf({
      type: 'object',
      properties: {
        city: { type: 'string', description: 'Name', pattern: '(a+)+$', minLength: 1 },
        days: { type: ['integer', 'null'], minimum: 1, default: 3 },
        unit: {
          oneOf: [
            { const: 'c', title: 'Celsius' },
            { const: 'f', title: 'Fahrenheit' },
          ],
        },
        mode: { const: 'fast' },
        tags: { type: 'array', items: { type: 'string' } },
        anything: { not: {} },
        nested: { type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'] },
      },
      required: ['city'],
    })
    expect(schema).toMatchObject({
      type: 'object',
      required: ['city'],
      properties: {
        city: { type: 'string', description: 'Name', minLength: 1 },
        days: { type: 'integer', minimum: 1 },
        unit: { enum: ['c', 'f'] },
        mode: { enum: ['fast'] },
        tags: { type: 'array', items: { type: 'string' } },
        anything: {},
        nested: { type: 'object', required: ['a'] },
      },
    })
    expect(JSON.stringify(schema)).not.toContain('pattern')
    expect(defaultsOf(schema)).toEqual({ days: 3 })
    expect(checkValue({}, schema, {}).map(({ path }) => path)).toEqual([['city']])
  })

  it('resolves definitions, and ends for those that contain themselves', () => {
    const schema = formSchemaOf({
      type: 'object',
      properties: { tree: { $ref: '#/$defs/node' }, other: { $ref: 'https://example.com/x' } },
      required: ['tree'],
      $defs: {
        node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] },
      },
    })
    expect(schema.properties?.['tree']).toEqual({ $ref: '#/definitions/node' })
    expect(schema.properties?.['other']).toEqual({})
    expect(blankValue(schema, schema.definitions ?? {})).toEqual({ tree: {} })
  })

  it.each([undefined, null, true, 'x', [], { type: 'string' }, { type: 'object' }])(
    'of %j has no fields',
    (schema) => {
      expect(formSchemaOf(schema).properties).toEqual({})
    },
  )

  it('ends for deep schemas', () => {
    let schema: object = { type: 'string' }
    for (let depth = 0; depth < 1_000; depth += 1) schema = { type: 'object', properties: { a: schema } }
    expect(formSchemaOf(schema).type).toBe('object')
  })
})
