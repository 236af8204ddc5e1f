import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Names from the outermost to the innermost field. */
export type FieldPath = readonly [string, ...string[]]

/** Whether the name of a configured field is a path, which no API has as the name of a field. */
export function isPointer(name: string): boolean {
  return name.startsWith('/')
}

/**
 * Parses a JSON Pointer (RFC 6901) that leads through objects. Undefined if it has an invalid escape or an
 * empty name.
 */
export function parsePointer(pointer: string): FieldPath | undefined {
  const names = pointer.split('/').slice(1)
  if (names.some((name) => name === '' || /~(?![01])/.test(name))) return undefined
  const [first, ...rest] = names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  return first === undefined ? undefined : [first, ...rest]
}

/** The object with a field set. Other values on the way are replaced by objects. */
export function withField(object: JsonObject, [name, ...rest]: FieldPath, value: JsonValue): JsonObject {
  const [next, ...further] = rest
  if (next === undefined) return { ...object, [name]: value }
  const own = Object.hasOwn(object, name) ? object[name] : undefined
  return { ...object, [name]: withField(isJsonObject(own) ? own : {}, [next, ...further], value) }
}

/** The object with a field set if it is absent. The same object if another value is on the way. */
export function withDefault(object: JsonObject, [name, ...rest]: FieldPath, value: JsonValue): JsonObject {
  const [next, ...further] = rest
  const isPresent = Object.hasOwn(object, name)
  if (next === undefined) return isPresent ? object : { ...object, [name]: value }
  const own = isPresent ? object[name] : {}
  if (!isJsonObject(own)) return object
  const changed = withDefault(own, [next, ...further], value)
  return changed === own ? object : { ...object, [name]: changed }
}

/** A configured field by path. */
export type NestedField = {
  readonly path: FieldPath
  readonly value: JsonValue
  /** Set only if the client sends the outermost field: otherwise a plain default has the value. */
  readonly withinPresent: boolean
}

/** Configured fields: those of the outermost object, and those by path. */
export type SplitFields = {
  readonly plain: Readonly<Record<string, unknown>>
  readonly nested: readonly NestedField[]
}

/** Splits configured fields by the form of their names. Paths below a plain field change its value. */
export function splitFields(
  fields: Readonly<Record<string, unknown>> = {},
  kind: 'defaults' | 'overrides' = 'overrides',
): SplitFields {
  const names = Object.keys(fields)
  if (!names.some(isPointer)) return { plain: fields, nested: [] }
  let plain: JsonObject = {}
  const nested: NestedField[] = []
  for (const name of names.filter((one) => !isPointer(one))) plain[name] = jsonOf(fields[name])
  for (const name of names.filter(isPointer)) {
    const path = parsePointer(name)
    if (path === undefined) throw new Error(`"${name}" is not a JSON Pointer`)
    const value = jsonOf(fields[name])
    const withinPresent = Object.hasOwn(plain, path[0])
    const isPlain = path.length === 1
    if (isPlain || withinPresent) plain = withField(plain, path, value)
    if (!isPlain && (kind === 'defaults' || !withinPresent)) nested.push({ path, value, withinPresent })
  }
  return { plain, nested }
}

/** Configurations are JSON. */
function jsonOf(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value ?? null))
}
