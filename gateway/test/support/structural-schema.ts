/** Limits of the API server for CustomResourceDefinitions that plain `kubectl apply` can write. */
const maxBytes = 256 * 1024

/** Keywords of structural schemas; `oneOf` in the form that contains nothing but `required`. */
const keywords = new Set([
  'description',
  'type',
  'format',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'maxProperties',
  'items',
  'properties',
  'additionalProperties',
  'required',
  'oneOf',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
])

type Json = { readonly [key: string]: unknown }

/**
 * Checks a schema against the rules of structural schemas and of this project: known keywords, a type at
 * every level, bounded strings, lists and maps. Returns one line for each violation.
 */
export function structuralMistakes(schema: unknown, path = '$'): string[] {
  if (!isObject(schema)) return [`${path} must be an object`]
  return [...keywordMistakes(schema, path), ...typeMistakes(schema, path), ...childMistakes(schema, path)]
}

/** Checks that a definition fits into the annotation of `kubectl apply`. */
export function sizeMistakes(definition: unknown): string[] {
  const bytes = Buffer.byteLength(JSON.stringify(definition))
  return bytes < maxBytes ? [] : [`the definition has ${bytes} bytes, at most ${maxBytes} are allowed`]
}

function keywordMistakes(schema: Json, path: string): string[] {
  const unknown = Object.keys(schema).filter((key) => !keywords.has(key))
  const alternatives = schema['oneOf']
  const isPlain =
    alternatives === undefined ||
    (Array.isArray(alternatives) &&
      alternatives.every((option) => isObject(option) && Object.keys(option).join() === 'required'))
  return [
    ...unknown.map((key) => `${path} must not have the keyword ${key}`),
    ...(isPlain ? [] : [`${path}.oneOf must contain only required`]),
    ...ruleMistakes(schema, path),
  ]
}

/** Rules see typed values only, and need a message. */
function ruleMistakes(schema: Json, path: string): string[] {
  const rules = schema['x-kubernetes-validations']
  if (rules === undefined) return []
  const isComplete =
    Array.isArray(rules) &&
    rules.every((rule) => isObject(rule) && rule['rule'] !== '' && String(rule['message'] ?? '') !== '')
  return [
    ...(isComplete ? [] : [`${path} must have rules with messages`]),
    ...(schema['type'] === undefined ? [`${path} must have a type, for its rules`] : []),
  ]
}

function typeMistakes(schema: Json, path: string): string[] {
  const isFree = schema['x-kubernetes-preserve-unknown-fields'] === true
  const bound = (key: string) => (typeof schema[key] === 'number' ? [] : [`${path} must have ${key}`])
  switch (schema['type']) {
    case 'string':
      return schema['enum'] === undefined ? bound('maxLength') : []
    case 'array':
      return [...bound('maxItems'), ...(isObject(schema['items']) ? [] : [`${path} must have items`])]
    case 'object':
      return schema['additionalProperties'] === undefined ? [] : mapMistakes(schema, path)
    case 'integer':
    case 'number':
    case 'boolean':
      return []
    case undefined:
      return isFree || schema['x-kubernetes-int-or-string'] === true ? [] : [`${path} must have a type`]
    default:
      return [`${path} must have a known type`]
  }
}

function mapMistakes(schema: Json, path: string): string[] {
  if (schema['properties'] !== undefined) return [`${path} must not have both fields and free keys`]
  if (!isObject(schema['additionalProperties'])) return [`${path}.additionalProperties must be a schema`]
  return typeof schema['maxProperties'] === 'number' ? [] : [`${path} must have maxProperties`]
}

function childMistakes(schema: Json, path: string): string[] {
  const { properties = {}, items, additionalProperties } = schema
  return [
    ...(isObject(properties)
      ? Object.entries(properties).flatMap(([name, child]) =>
          // The API server has a schema for it.
          path === '$' && name === 'metadata' ? [] : structuralMistakes(child, `${path}.${name}`),
        )
      : [`${path}.properties must be an object`]),
    ...(items === undefined ? [] : structuralMistakes(items, `${path}[]`)),
    ...(isObject(additionalProperties) ? structuralMistakes(additionalProperties, `${path}.<name>`) : []),
  ]
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
