import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { createSchemaBudget, createSchemaConverter } from './json-schema.ts'

function convert(schema: JsonValue, schemas: JsonObject = {}): JsonObject {
  return createSchemaConverter({ components: { schemas } }, createSchemaBudget())(schema, [])
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

describe('a schema of a tool', () => {
  it('has no references left', () => {
    const schemas = { A: { type: 'object', properties: { b: ref('B') } }, B: { type: 'string' } }
    expect(convert({ type: 'array', items: ref('A') }, schemas)).toEqual({
      type: 'array',
      items: { type: 'object', properties: { b: { type: 'string' } } },
    })
  })

  it('preserves siblings of a reference', () => {
    expect(
      convert({ ...ref('A'), description: 'here' }, { A: { type: 'string', description: 'there' } }),
    ).toEqual({
      type: 'string',
      description: 'here',
    })
  })

  it('is cut where it would begin again', () => {
    const node = { type: 'object', description: 'A node', properties: { next: ref('Node') } }
    expect(convert(ref('Node'), { Node: node })).toEqual({
      ...node,
      properties: { next: { type: 'object', description: 'A node' } },
    })
  })

  it('stays small for a small document with a very large expansion', () => {
    const schemas: JsonObject = { L0: { type: 'string' } }
    for (let level = 1; level <= 30; level += 1) {
      schemas[`L${level}`] = {
        type: 'object',
        properties: { a: ref(`L${level - 1}`), b: ref(`L${level - 1}`) },
      }
    }
    expect(JSON.stringify(convert(ref('L30'), schemas)).length).toBeLessThan(500_000)
  })

  it('shares one budget with the other tools of its document', () => {
    const wide = {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [n, {}])),
    }
    const budget = createSchemaBudget()
    const sizes = Array.from({ length: 200 }, () => {
      const converted = createSchemaConverter({}, budget)(wide, [])
      return JSON.stringify(converted).length
    })
    expect(sizes[0]).toBeGreaterThan(10_000)
    expect(sizes.at(-1)).toBeLessThan(100)
  })

  it('rejects circular references', () => {
    expect(() => convert(ref('A'), { A: ref('B'), B: ref('A') })).toThrow('must not exceed 20 references')
  })

  it.each([
    [{ type: 'string', nullable: true }, { type: ['string', 'null'] }],
    [
      { type: 'string', nullable: true, enum: ['a'] },
      { type: ['string', 'null'], enum: ['a', null] },
    ],
    [{ minimum: 1, exclusiveMinimum: true }, { exclusiveMinimum: 1 }],
    [{ maximum: 1, exclusiveMaximum: false }, { maximum: 1 }],
    [{ exclusiveMaximum: 5 }, { exclusiveMaximum: 5 }],
    [{ type: 'string', xml: {}, example: 'x', 'x-own': 1, discriminator: {} }, { type: 'string' }],
    [
      { additionalProperties: false, items: true },
      { additionalProperties: false, items: true },
    ],
    [true, {}],
    [false, { not: {} }],
  ])('converts OpenAPI 3.0 to JSON Schema: %j', (schema, converted) => {
    expect(convert(schema)).toEqual(converted)
  })

  it('does not take names and values for keywords', () => {
    const schema = {
      properties: { $ref: { type: 'string' }, example: { type: 'integer' }, nullable: { type: 'boolean' } },
      default: { $ref: '#/nowhere', nullable: true },
      enum: [{ $ref: '#/nowhere' }],
    }
    expect(convert(schema)).toEqual(schema)
  })
})
