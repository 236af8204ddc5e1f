import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { DocumentError, type DocumentPath, resolveReference } from './reference.ts'

/**
 * How deep and how large one tool's schema may become, and all of a document together; what lies beyond is described by
 * its type alone. Without references, a small document may say something very large.
 */
const maxDepth = 24
const maxNodes = 4000
const maxDocumentNodes = 200_000

/** What is left of the size that the schemas of a document may have. */
export type SchemaBudget = { nodes: number }

export function createSchemaBudget(): SchemaBudget {
  return { nodes: maxDocumentNodes }
}

/** Keywords that hold a schema, a list of schemas, or schemas by name. All others are data, and copied. */
const schemaKeywords = new Set([
  'items',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
])
const listKeywords = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const mapKeywords = new Set(['properties', 'patternProperties', 'dependentSchemas'])
/** Of OpenAPI, without a meaning for a caller of a tool; and what could only refer to another schema. */
const droppedKeywords = new Set([
  'discriminator',
  'xml',
  'externalDocs',
  'example',
  'nullable',
  '$id',
  '$anchor',
  '$dynamicAnchor',
  '$dynamicRef',
  '$schema',
  '$defs',
])

/** Converts the schemas of one tool; the bound on their size is shared by all of them. */
export type SchemaConverter = (schema: JsonValue | undefined, place: DocumentPath) => JsonObject

/**
 * Makes JSON Schema 2020-12 without references of a document's schemas, since clients hand it to models that
 * know nothing of the document. A schema that contains itself is cut where it would begin again.
 */
export function createSchemaConverter(document: JsonObject, budget: SchemaBudget): SchemaConverter {
  const end = Math.max(0, budget.nodes - maxNodes)
  return (schema, place) => convert(schema, place, [])

  function convert(schema: JsonValue | undefined, place: DocumentPath, trail: readonly string[]): JsonObject {
    if (schema === undefined || schema === true) return {}
    if (schema === false) return { not: {} }
    budget.nodes -= 1
    const reference = isJsonObject(schema) ? schema['$ref'] : undefined
    const known = resolveReference(document, schema, place)
    const again = typeof reference === 'string' && trail.includes(reference)
    if (again || trail.length > maxDepth || budget.nodes < end) return outline(known)
    const inner = [...trail, typeof reference === 'string' ? reference : '']
    const converted: JsonObject = {}
    for (const [keyword, value] of Object.entries(known)) {
      if (droppedKeywords.has(keyword) || keyword.startsWith('x-')) continue
      converted[keyword] = convertKeyword(keyword, value, [...place, keyword], inner)
    }
    return withNull(withBounds(converted), known['nullable'] === true)
  }

  function convertKeyword(
    keyword: string,
    value: JsonValue,
    place: DocumentPath,
    trail: readonly string[],
  ): JsonValue {
    if (schemaKeywords.has(keyword)) {
      return typeof value === 'boolean' ? value : convert(value, place, trail)
    }
    if (listKeywords.has(keyword)) {
      if (!Array.isArray(value)) throw new DocumentError(place, 'must be a list')
      return value.map((item, index) => convert(item, [...place, index], trail))
    }
    if (mapKeywords.has(keyword)) {
      if (!isJsonObject(value)) throw new DocumentError(place, 'must be an object')
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, convert(item, [...place, key], trail)]),
      )
    }
    return value
  }
}

/** What remains of a schema whose inside is not shown. */
function outline({ type, description }: JsonObject): JsonObject {
  return {
    ...(type === undefined ? {} : { type }),
    ...(description === undefined ? {} : { description }),
  }
}

/** OpenAPI 3.0 says `exclusiveMinimum: true` beside `minimum`, JSON Schema gives the bound itself. */
function withBounds(schema: JsonObject): JsonObject {
  for (const [exclusive, inclusive] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    const flag = schema[exclusive]
    if (typeof flag !== 'boolean') continue
    const bound = schema[inclusive]
    delete schema[exclusive]
    if (!flag || bound === undefined) continue
    delete schema[inclusive]
    schema[exclusive] = bound
  }
  return schema
}

/** OpenAPI 3.0 says `nullable`, JSON Schema lists the type. */
function withNull(schema: JsonObject, nullable: boolean): JsonObject {
  const { type } = schema
  if (!nullable || typeof type !== 'string') return schema
  const values = schema['enum']
  return {
    ...schema,
    type: [type, 'null'],
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}),
  }
}
