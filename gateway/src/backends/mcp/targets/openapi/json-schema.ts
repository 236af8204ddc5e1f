import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { DocumentError, type DocumentPath, resolveReference } from './reference.ts'

/**
 * Limits on depth and size of one tool's schema, and of all schemas of a document; beyond them, a schema is
 * reduced to its type. Resolved references can make a small document very large.
 */
const maxDepth = 24
const maxNodes = 4000
const maxDocumentNodes = 200_000

/** Remaining schema size of a document. */
export type SchemaBudget = { nodes: number }

export function createSchemaBudget(): SchemaBudget {
  return { nodes: maxDocumentNodes }
}

/** Keywords with a schema, a list of schemas, or schemas by name. Other keywords are copied. */
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
/** OpenAPI keywords without meaning for tool callers, and keywords of references. */
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

/** Converter of the schemas of one tool, which share a size limit. */
export type SchemaConverter = (schema: JsonValue | undefined, place: DocumentPath) => JsonObject

/**
 * Converts schemas of a document to JSON Schema 2020-12 without references, since models do not know the
 * document. Recursive schemas are cut at the first repetition.
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

/** Outline of a schema without its content. */
function outline({ type, description }: JsonObject): JsonObject {
  return {
    ...(type === undefined ? {} : { type }),
    ...(description === undefined ? {} : { description }),
  }
}

/** Converts `exclusiveMinimum: true` of OpenAPI 3.0 to the numeric bound of JSON Schema. */
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

/** Converts `nullable` of OpenAPI 3.0 to a list of types. */
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
