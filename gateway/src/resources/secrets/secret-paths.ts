import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { childShapes, type Shape } from '../../schema/shape.ts'
import { findKind, type Kind, shapesOf } from '../kinds.ts'
import { hasSecret, isFlagValue, isMasked, mask, maskText } from './secret-text.ts'

type FieldPath = readonly (string | number)[]

/**
 * Paths of the secrets in a stored value, for encryption at rest: fields marked in the schema, and texts with
 * credentials (`secret-text.ts`), such as header fields and addresses.
 */
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
  if (isSecret(shapes, value)) return path.length === 0 ? [] : [path]
  if (typeof value === 'string') return path.length > 0 && hasSecret(value, nameAt(path)) ? [path] : []
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => {
      const place = [...path, index]
      if (typeof item === 'string' && isFlagValue(value, index)) return [place]
      return secretsIn(item, childShapes(shapes, 0), place)
    })
  }
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, entry]) =>
    secretsIn(entry, childShapes(shapes, key), [...path, key]),
  )
}

/** Masks the secrets in the value of a record. `name` is the name of the record. */
export function maskRecord(kind: Kind, name: string | undefined, value: JsonValue): JsonValue {
  return kind.placement.kind === 'catalog' ? value : maskValue(value, shapesOf(kind, name), '')
}

/** Masks the secrets in a value; `name` is the name of its member. */
export function maskValue(value: JsonValue, shapes: readonly Shape[], name: string): JsonValue {
  // `{file: …}` refers to a secret and contains none.
  if (isSecret(shapes, value) && !isFileReference(value)) return value === null ? value : mask
  if (typeof value === 'string') return maskText(value, name)
  if (Array.isArray(value)) {
    return value.map((item, index) =>
      typeof item === 'string' && isFlagValue(value, index)
        ? mask
        : maskValue(item, childShapes(shapes, 0), name),
    )
  }
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, maskValue(entry, childShapes(shapes, key), key)]),
  )
}

/** Path of a mask in place of a secret; undefined if there is none. */
export function maskedPlace(kind: Kind, name: string | undefined, value: JsonValue): string | undefined {
  if (kind.placement.kind === 'catalog') return undefined
  return findMask(value, shapesOf(kind, name), ['value'])?.join('.')
}

function findMask(value: JsonValue, shapes: readonly Shape[], path: FieldPath): FieldPath | undefined {
  if (typeof value === 'string') {
    return (isSecret(shapes, value) && value === mask) || isMasked(value, nameAt(path)) ? path : undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, entry] of Object.entries(value)) {
    const step = Array.isArray(value) ? 0 : key
    const place = [...path, Array.isArray(value) ? Number(key) : key]
    if (entry === mask && Array.isArray(value) && isFlagValue(value, Number(key))) return place
    const found = findMask(entry, childShapes(shapes, step), place)
    if (found !== undefined) return found
  }
  return undefined
}

/** Whether the value is a secret as a whole. Of a choice, the shapes of the kind of the value count. */
function isSecret(shapes: readonly Shape[], value: JsonValue): boolean {
  const others = isJsonObject(value) ? 'string' : 'object'
  return shapes.some(({ kind, meta }) => meta.secret === true && kind !== others)
}

function isFileReference(value: JsonValue): boolean {
  return isJsonObject(value) && typeof value['file'] === 'string' && Object.keys(value).length === 1
}

/** Member name of a path; items of a list have the name of the list. */
function nameAt(path: FieldPath): string {
  const name = path.findLast((step) => typeof step === 'string')
  return typeof name === 'string' ? name : ''
}
