import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Finds an object of the provider in a part. Returns the end of its path. */
export type PartCheck = (part: JsonObject) => string | undefined

/** Members of the body with parts, members of parts with further parts, and parts that are not read. */
export type PartPlaces = {
  readonly roots: readonly string[]
  readonly nested: readonly string[]
  isSkipped?(part: JsonObject): boolean
}

/** Returns the path of the first part of a body that a check refuses. */
export function findPart(body: JsonObject, places: PartPlaces, check: PartCheck): string | undefined {
  for (const name of places.roots) {
    const found = findIn(body[name], places, check)
    if (found !== undefined) return `${name}${found}`
  }
  return undefined
}

function findIn(value: JsonValue | undefined, places: PartPlaces, check: PartCheck): string | undefined {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = findIn(item, places, check)
      if (found !== undefined) return `[${index}]${found}`
    }
    return undefined
  }
  if (!isJsonObject(value) || places.isSkipped?.(value) === true) return undefined
  const own = check(value)
  if (own !== undefined) return own
  // Most parts are texts. A search for each name would take longer than the check of the body.
  if (!hasParts(value)) return undefined
  for (const name of places.nested) {
    const found = findIn(value[name], places, check)
    if (found !== undefined) return `.${name}${found}`
  }
  const { variables } = value
  for (const [name, item] of isJsonObject(variables) ? Object.entries(variables) : []) {
    const found = findIn(item, places, check)
    if (found !== undefined) return `.variables.${name}${found}`
  }
  return undefined
}

/** Whether a member is an object or a list. */
function hasParts(value: JsonObject): boolean {
  for (const name in value) if (typeof value[name] === 'object') return true
  return false
}

/** Returns the path of the first object in a value, at any depth, that a check refuses. */
export function findDeep(
  value: JsonValue | undefined,
  skipped: ReadonlySet<string>,
  check: PartCheck,
): string | undefined {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = findDeep(item, skipped, check)
      if (found !== undefined) return `[${index}]${found}`
    }
    return undefined
  }
  if (!isJsonObject(value)) return undefined
  const own = check(value)
  if (own !== undefined) return own
  for (const [name, member] of Object.entries(value)) {
    const found = skipped.has(name) ? undefined : findDeep(member, skipped, check)
    if (found !== undefined) return `.${name}${found}`
  }
  return undefined
}
