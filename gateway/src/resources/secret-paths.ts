import { isJsonObject, type JsonObject, type JsonValue } from '../lib/json.ts'
import { type Shape, shapesUnder } from '../schema/shape.ts'
import { findKind, shapesOf } from './kinds.ts'

type FieldPath = readonly (string | number)[]

/** Where the secrets of a stored value are, by the marks of the schema; for encryption at rest. */
export function secretPaths(kindName: string): (value: JsonObject) => readonly FieldPath[] {
  const kind = findKind(kindName)
  if (kind === undefined) return () => []
  return (value) => {
    const { placement } = kind
    if (placement.kind === 'policies') {
      const { name, policy } = value
      return typeof name === 'string' && policy !== undefined
        ? secretsIn(policy, shapesOf(kind, name), ['policy'])
        : []
    }
    return placement.kind === 'catalog' ? [] : secretsIn(value, shapesOf(kind, undefined), [])
  }
}

function secretsIn(value: JsonValue, shapes: readonly Shape[], path: FieldPath): FieldPath[] {
  if (shapes.some(({ meta }) => meta.secret === true)) return path.length === 0 ? [] : [path]
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => secretsIn(item, shapesUnder(shapes, 0), [...path, index]))
  }
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, entry]) =>
    secretsIn(entry, shapesUnder(shapes, key), [...path, key]),
  )
}
