import { isJsonObject, type JsonValue } from '../../lib/json/json.ts'

/** A difference: JSON Pointer (RFC 6901), and the values as shown; an absent value is undefined. */
export type Difference = {
  readonly path: string
  readonly before?: JsonValue
  readonly after?: JsonValue
}

/** A value and its form for clients, without secrets. */
export type Side = { readonly value: JsonValue | undefined; readonly shown: JsonValue | undefined }

const maxDifferences = 200

/**
 * Differences between two values, at most 200. Values are compared with their secrets and returned without
 * them. List items are compared by index.
 */
export function differencesOf(before: Side, after: Side): Difference[] {
  const found: Difference[] = []
  const open: { path: string; before: Side; after: Side }[] = [{ path: '', before, after }]
  // Not recursive, because clients control the depth.
  for (let next = open.pop(); next !== undefined && found.length < maxDifferences; next = open.pop()) {
    const { path } = next
    if (JSON.stringify(next.before.value) === JSON.stringify(next.after.value)) continue
    const names = memberNames(next.before, next.after)
    if (names === undefined) {
      found.push({ path, ...sideAs('before', next.before), ...sideAs('after', next.after) })
      continue
    }
    for (const name of names.toReversed()) {
      const escaped = String(name).replaceAll('~', '~0').replaceAll('/', '~1')
      open.push({
        path: `${path}/${escaped}`,
        before: memberOf(next.before, name),
        after: memberOf(next.after, name),
      })
    }
  }
  return found
}

/** Names of members if all values are objects, or all are lists. */
function memberNames(before: Side, after: Side): (string | number)[] | undefined {
  const values = [before.value, before.shown, after.value, after.shown]
  if (values.every((value) => Array.isArray(value))) {
    return Array.from({ length: Math.max(...values.map((value) => value.length)) }, (_, index) => index)
  }
  if (!values.every((value) => isJsonObject(value))) return undefined
  return [...new Set(values.flatMap((value) => Object.keys(value)))]
}

function memberOf({ value, shown }: Side, name: string | number): Side {
  return { value: memberValue(value, name), shown: memberValue(shown, name) }
}

function memberValue(parent: JsonValue | undefined, name: string | number): JsonValue | undefined {
  if (Array.isArray(parent)) return parent[Number(name)]
  return isJsonObject(parent) && Object.hasOwn(parent, name) ? parent[name] : undefined
}

function sideAs(name: 'before' | 'after', { value, shown }: Side): Partial<Difference> {
  return value === undefined ? {} : { [name]: shown ?? null }
}
