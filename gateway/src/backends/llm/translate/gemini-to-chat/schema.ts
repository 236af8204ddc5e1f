import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'

/** Maximum nesting, because schemas are read recursively. */
const maxDepth = 64

const schemaNames: ReadonlyMap<string, string> = new Map([
  ['any_of', 'anyOf'],
  ['min_items', 'minItems'],
  ['max_items', 'maxItems'],
  ['min_length', 'minLength'],
  ['max_length', 'maxLength'],
  ['min_properties', 'minProperties'],
  ['max_properties', 'maxProperties'],
])

/** Members with the numbers of int64 fields, which are texts in JSON. */
const counts: ReadonlySet<string> = new Set([
  ...['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'],
])

/** Members without a meaning in JSON Schema. `example` is a list there. */
const omitted: ReadonlySet<string> = new Set([
  ...['nullable', 'propertyOrdering', 'property_ordering', 'example', 'format'],
])

/** Formats of JSON Schema; those of numbers (`int32`, `double`) and `enum` exist in OpenAPI only. */
const formats: ReadonlySet<JsonValue> = new Set([
  'date-time',
  'date',
  'time',
  'duration',
  'email',
  'uuid',
  'ipv4',
  'ipv6',
  'uri',
])

/**
 * JSON Schema for a `Schema` of the Gemini API, which is a subset of OpenAPI with types in upper case.
 * https://ai.google.dev/api/caching#Schema. Undefined if it is nested too deep.
 */
export function toJsonSchema(schema: JsonObject, depth = 0): JsonObject | undefined {
  if (depth > maxDepth) return undefined
  const translated: JsonObject = {}
  for (const [given, value] of Object.entries(schema)) {
    const name = schemaNames.get(given) ?? given
    if (omitted.has(name)) continue
    const member = toMember(name, value, depth + 1)
    if (member === undefined) return undefined
    translated[name] = member
  }
  if (formats.has(schema.format ?? null)) translated.format = schema.format ?? null
  return schema.nullable === true ? nullable(translated) : translated
}

function toMember(name: string, value: JsonValue, depth: number): JsonValue | undefined {
  if (name === 'type') return typeof value === 'string' ? value.toLowerCase() : value
  if (counts.has(name) && typeof value === 'string') return Number(value)
  if (name === 'items' || name === 'additionalProperties')
    return isJsonObject(value) ? toJsonSchema(value, depth) : value
  if (name === 'anyOf' && Array.isArray(value)) {
    const schemas = value.map((item) => (isJsonObject(item) ? toJsonSchema(item, depth) : item))
    return schemas.every((item) => item !== undefined) ? schemas : undefined
  }
  if ((name === 'properties' || name === '$defs' || name === 'defs') && isJsonObject(value)) {
    const properties: JsonObject = {}
    for (const [property, item] of Object.entries(value)) {
      const translated = isJsonObject(item) ? toJsonSchema(item, depth) : item
      if (translated === undefined) return undefined
      properties[property] = translated
    }
    return properties
  }
  return value
}

function nullable(schema: JsonObject): JsonObject {
  const { type, enum: values, anyOf } = schema
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: 'null' }] }
  return {
    ...schema,
    ...(typeof type === 'string' ? { type: [type, 'null'] } : undefined),
    ...(Array.isArray(values) ? { enum: [...values, null] } : undefined),
  }
}

/** A schema whose objects permit no further properties, and whether they require all of theirs. */
export type ClosedSchema = { readonly schema: JsonObject; readonly requiresAll: boolean }

/**
 * Closes the objects of a schema for a response: other APIs require it, and Gemini generates only the
 * properties of a schema. Undefined if it is nested too deep.
 */
export function closeSchema(schema: JsonObject): ClosedSchema | undefined {
  const state = { requiresAll: true, tooDeep: false }
  const closed = close(schema, state, 0)
  return state.tooDeep || !isJsonObject(closed)
    ? undefined
    : { schema: closed, requiresAll: state.requiresAll }
}

function close(
  value: JsonValue,
  state: { requiresAll: boolean; tooDeep: boolean },
  depth: number,
): JsonValue {
  if (depth > maxDepth) {
    state.tooDeep = true
    return value
  }
  if (Array.isArray(value)) return value.map((item) => close(item, state, depth + 1))
  if (!isJsonObject(value)) return value
  const { properties, required, additionalProperties } = value
  const closed: JsonObject = {}
  for (const [name, member] of Object.entries(value)) {
    // Values of these members are data, not schemas.
    const isData = name === 'enum' || name === 'const' || name === 'default' || name === 'examples'
    closed[name] =
      name === 'properties' || name === '$defs' || name === 'definitions'
        ? closeEach(member, state, depth + 1)
        : isData
          ? member
          : close(member, state, depth + 1)
  }
  if (isJsonObject(properties)) {
    const names = Array.isArray(required) ? required : []
    if (!Object.keys(properties).every((name) => names.includes(name))) state.requiresAll = false
    if (additionalProperties === undefined) closed.additionalProperties = false
    else if (additionalProperties !== false) state.requiresAll = false
  }
  return closed
}

function closeEach(
  schemas: JsonValue,
  state: { requiresAll: boolean; tooDeep: boolean },
  depth: number,
): JsonValue {
  if (!isJsonObject(schemas)) return schemas
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, close(schema, state, depth)]),
  )
}
