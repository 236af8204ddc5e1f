import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/**
 * The object with names in camel case: Google reads snake case as well. Other spellings, such as two
 * underscores, are unknown members, because guards do not read them. Nested objects are unchanged.
 */
export function camelCased(object: JsonObject): JsonObject {
  let cased: JsonObject | undefined
  for (const name in object) {
    const value = object[name]
    if (value === undefined) continue
    const camel = name.includes('_')
      ? name.replace(/(?<!_)_([a-z0-9])/g, (_, letter) => letter.toUpperCase())
      : name
    if (camel !== name) cased ??= { ...object }
    if (cased === undefined || camel === name) continue
    delete cased[name]
    cased[camel] = value
  }
  return cased ?? object
}

/** The object at a path in camel case; empty, and refused, for other values. */
export function objectAt(value: JsonValue | undefined, path: string, refusals: Refusals): JsonObject {
  if (isJsonObject(value)) return camelCased(value)
  refusals.add(path, 'must be an object')
  return {}
}

/** Objects of a list in camel case, with their paths. Google reads a single object as a list of one. */
export function objectsAt(
  value: JsonValue | undefined,
  path: string,
  refusals: Refusals,
): [object: JsonObject, path: string][] {
  if (isAbsent(value)) return []
  if (!Array.isArray(value)) return [[objectAt(value, path, refusals), path]]
  return value.map((item, index) => {
    const at = `${path}[${index}]`
    return [objectAt(item, at, refusals), at]
  })
}
