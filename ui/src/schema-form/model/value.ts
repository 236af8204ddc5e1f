/** Path of a field within a value. */
export type FieldPath = readonly (string | number)[]

export type JsonObject = { readonly [key: string]: unknown }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Own member of an object, or item of a list; undefined if absent. */
export function memberOf(value: unknown, step: string | number): unknown {
  if (Array.isArray(value)) return typeof step === 'number' ? value[step] : undefined
  return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
}

export function valueAt(value: unknown, path: FieldPath): unknown {
  return path.reduce(memberOf, value)
}

/** A copy of an object with a member set, or removed if undefined. Other members keep their order. */
export function withMember(value: unknown, name: string, member: unknown): JsonObject {
  const object = isObject(value) ? value : {}
  if (member === undefined) return Object.fromEntries(Object.entries(object).filter(([key]) => key !== name))
  // Assignment would call the setter of the prototype for a member named __proto__.
  return Object.hasOwn(object, name)
    ? Object.fromEntries(Object.entries(object).map(([key, own]) => [key, key === name ? member : own]))
    : Object.fromEntries([...Object.entries(object), [name, member]])
}

/** A copy with another value at a path. Missing objects on the way are created; undefined removes. */
export function withValueAt(value: unknown, path: FieldPath, next: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return next
  const member = withValueAt(memberOf(value, step), rest, next)
  if (typeof step === 'string') return withMember(value, step, member)
  const items = Array.isArray(value) ? value : []
  if (member === undefined) return items.toSpliced(step, 1)
  return step < items.length ? items.with(step, member) : [...items, member]
}

/** A copy of a list with one item at another index. */
export function withItemMoved<Item>(items: readonly Item[], from: number, to: number): readonly Item[] {
  if (from === to || items[from] === undefined) return items
  const [item] = items.slice(from, from + 1)
  return items.toSpliced(from, 1).toSpliced(to, 0, item as Item)
}

/** Whether two JSON values are equal. The order of members does not matter. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false
    return one.every((item, index) => sameJson(item, other[index]))
  }
  if (!isObject(one) || !isObject(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  return keys.every((key) => Object.hasOwn(other, key) && sameJson(one[key], other[key]))
}

/** Replacement of a secret in replies of the gateway. */
const mask = '***'

/** Whether a value is a secret that the gateway has masked; sent back, it retains the stored one. */
export function isMasked(value: unknown): boolean {
  return value === mask
}

/** Whether a text contains a masked part, such as `https://***@example.com`. */
export function hasMask(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(mask)
  if (Array.isArray(value)) return value.some(hasMask)
  return isObject(value) && Object.values(value).some(hasMask)
}
