import type { JsonSchema } from '../../../../schema-form/model/schema.ts'
import { isObject } from '../../../../schema-form/model/value.ts'

const maxDepth = 24

/**
 * Translates any JSON Schema to the subset that forms understand. Parts that they do not understand become JSON
 * inputs; the server checks the value. Patterns are dropped: they are untrusted and may be slow.
 */
export function formSchemaOf(schema: unknown): JsonSchema {
  if (!isObject(schema)) return { type: 'object', properties: {} }
  const given = { ...membersOf(schema['definitions']), ...membersOf(schema['$defs']) }
  const definitions = Object.fromEntries(
    Object.entries(given).map(([name, definition]) => [name, translate(definition, 1)]),
  )
  const top = translate(schema, 0)
  const object = top.type === 'object' ? top : { type: 'object', properties: {} }
  return { ...object, properties: object.properties ?? {}, definitions }
}

function translate(schema: unknown, depth: number): JsonSchema {
  if (!isObject(schema) || depth > maxDepth) return {}
  const facts = factsOf(schema)
  const { $ref, anyOf, oneOf, const: constant, enum: values, type } = schema
  if (typeof $ref === 'string') {
    const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec($ref)?.[1]
    return name === undefined ? facts : { ...facts, $ref: `#/definitions/${name}` }
  }
  if (constant !== undefined) return { ...facts, enum: [constant] }
  if (Array.isArray(values)) return { ...facts, enum: values }
  const options = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined
  if (options !== undefined) return { ...facts, ...unionOf(options, depth) }
  if (Array.isArray(type)) {
    const types = type.filter((one) => one !== 'null')
    return {
      ...facts,
      ...unionOf(
        types.map((one) => ({ ...schema, type: one })),
        depth,
      ),
    }
  }
  return { ...facts, ...typed(schema, depth) }
}

function unionOf(options: readonly unknown[], depth: number): JsonSchema {
  const present = options.filter((option) => !(isObject(option) && option['type'] === 'null'))
  // Titled choices, as in elicitation.
  if (
    present.length > 0 &&
    present.every((option) => isObject(option) && typeof option['const'] === 'string')
  )
    return { enum: present.map((option) => (option as { const: string }).const) }
  const translated = present.map((option) => translate(option, depth + 1))
  return translated.length === 1 ? (translated[0] ?? {}) : { anyOf: translated }
}

function typed(schema: Readonly<Record<string, unknown>>, depth: number): JsonSchema {
  switch (schema['type']) {
    case 'string':
      return { type: 'string', ...numbers(schema, ['minLength', 'maxLength']) }
    case 'integer':
    case 'number':
      return { type: schema['type'], ...numbers(schema, ['minimum', 'maximum']) }
    case 'boolean':
      return { type: 'boolean' }
    case 'array':
      return {
        type: 'array',
        items: translate(schema['items'], depth + 1),
        ...numbers(schema, ['minItems', 'maxItems']),
      }
    case 'object':
      return objectOf(schema, depth)
    default:
      return schema['properties'] === undefined ? {} : objectOf(schema, depth)
  }
}

function objectOf(schema: Readonly<Record<string, unknown>>, depth: number): JsonSchema {
  const { properties, required, additionalProperties } = schema
  if (!isObject(properties)) {
    if (!isObject(additionalProperties)) return { type: 'object' }
    return { type: 'object', additionalProperties: translate(additionalProperties, depth + 1) }
  }
  const fields = Object.entries(properties).map(
    ([name, field]) => [name, translate(field, depth + 1)] as const,
  )
  const references = new Set(fields.flatMap(([name, field]) => (field.$ref === undefined ? [] : [name])))
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  return {
    type: 'object',
    properties: Object.fromEntries(fields),
    // A required reference may lead back to its own object, which has no smallest value.
    required: depth === 0 ? names : names.filter((name) => !references.has(name)),
  }
}

function factsOf({
  title,
  description,
  default: value,
  examples,
}: Readonly<Record<string, unknown>>): JsonSchema {
  const texts = [title, description].filter((text) => typeof text === 'string' && text !== '')
  return {
    ...(texts.length > 0 && { description: texts.join('. ') }),
    ...(value !== undefined && { default: value }),
    ...(Array.isArray(examples) && { examples }),
  }
}

function numbers(schema: Readonly<Record<string, unknown>>, names: readonly string[]): JsonSchema {
  return Object.fromEntries(
    names.flatMap((name) => (typeof schema[name] === 'number' ? [[name, schema[name]]] : [])),
  )
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

/** Defaults of the fields of a form, as its first value. */
export function defaultsOf(schema: JsonSchema): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
      field.default === undefined ? [] : [[name, field.default]],
    ),
  )
}
