type Schema = Readonly<Record<string, unknown>>

/** Arguments that a JSON Schema permits, as a first text to edit: required members, defaults, first values. */
export function exampleOf(schema: unknown, depth = 0): unknown {
  const { type, properties, required, items, enum: values, default: preset, examples } = fieldsOf(schema)
  if (preset !== undefined) return preset
  if (Array.isArray(examples) && examples.length > 0) return examples[0]
  if (Array.isArray(values) && values.length > 0) return values[0]
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return ''
    case 'number':
    case 'integer':
      return fieldsOf(schema)['minimum'] ?? 0
    case 'boolean':
      return false
    case 'array':
      return depth > 3 || items === undefined ? [] : [exampleOf(items, depth + 1)]
    case 'null':
      return null
    default:
      return depth > 3 ? {} : membersOf(fieldsOf(properties), required, depth)
  }
}

function membersOf(properties: Schema, required: unknown, depth: number): object {
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  return Object.fromEntries(names.map((name) => [name, exampleOf(properties[name] ?? {}, depth + 1)]))
}

function fieldsOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {}
}
