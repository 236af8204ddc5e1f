/**
 * The value `next` with every part that equals its counterpart in `previous` replaced by that very object, and `previous`
 * itself where all is equal: compiled results are remembered by object, so unchanged parts keep theirs. List items have
 * their counterpart by `name`, `id` or `key`, else by equal content, else by place. Changes neither argument.
 */
export function share<T>(previous: unknown, next: T): T {
  return shared(previous, next) as T
}

type JsonObject = Record<string, unknown>

function shared(previous: unknown, next: unknown): unknown {
  if (Object.is(previous, next)) return previous
  if (Array.isArray(next)) return Array.isArray(previous) ? sharedList(previous, next) : next
  if (isObject(next)) return isObject(previous) ? sharedObject(previous, next) : next
  return next
}

function sharedObject(previous: JsonObject, next: JsonObject): JsonObject {
  const keys = Object.keys(next)
  let same = keys.length === Object.keys(previous).length
  const result: JsonObject = {}
  for (const key of keys) {
    const known = Object.hasOwn(previous, key)
    const value = known ? shared(previous[key], next[key]) : next[key]
    same &&= known && Object.is(value, previous[key])
    set(result, key, value)
  }
  return same ? previous : result
}

function sharedList(previous: readonly unknown[], next: readonly unknown[]): readonly unknown[] {
  const property = identifyingProperty(previous, next)
  const before = property === undefined ? byContent(previous, next) : byIdentity(previous, next, property)
  const result = next.map((item, index) => shared(before[index], item))
  const same =
    result.length === previous.length && result.every((item, index) => Object.is(item, previous[index]))
  return same ? previous : result
}

/** For each item of `next` the one of `previous` that it continues. Looked up in maps, so that long lists stay cheap. */
function byIdentity(previous: readonly unknown[], next: readonly unknown[], property: string): unknown[] {
  const items = new Map(previous.map((item) => [identity(item, property), item]))
  return next.map((item) => items.get(identity(item, property)))
}

/** As `byIdentity`. Each item is continued by one at most, because equal items are still two. */
function byContent(previous: readonly unknown[], next: readonly unknown[]): unknown[] {
  const previousContents = previous.map(contentOf)
  const contents = next.map(contentOf)
  const moved = new Map<string, number[]>()
  for (const [index, content] of previousContents.entries()) {
    if (content === contents[index]) continue
    const places = moved.get(content)
    if (places === undefined) moved.set(content, [index])
    else places.push(index)
  }
  const left = new Set(previous.keys())
  const places = contents.map((content, index) => {
    const place = content === previousContents[index] ? index : moved.get(content)?.pop()
    if (place !== undefined) left.delete(place)
    return place
  })
  // What is neither where it was nor elsewhere was edited in its place.
  return places.map((place, index) => previous[place ?? (left.has(index) ? index : -1)])
}

/** The first of these properties that every item of both lists has, with a different text each. */
function identifyingProperty(previous: readonly unknown[], next: readonly unknown[]): string | undefined {
  return ['name', 'id', 'key', 'keyHash'].find(
    (property) => isUnique(previous, property) && isUnique(next, property),
  )
}

function isUnique(items: readonly unknown[], property: string): boolean {
  const seen = new Set(items.map((item) => identity(item, property)))
  return seen.size === items.length && !seen.has(undefined)
}

function identity(item: unknown, property: string): string | undefined {
  if (!isObject(item)) return undefined
  const value = Object.hasOwn(item, property) ? item[property] : undefined
  return typeof value === 'string' ? value : undefined
}

/** A text that is the same for equal content, whatever the order of keys, and for nothing else. */
function contentOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => marked(part)) ?? ''
}

/** Lists and objects as lists that begin with what they are; minus zero, which JSON has no text for, likewise. */
function marked(part: unknown): unknown {
  if (Array.isArray(part)) return ['[]', ...part]
  if (Object.is(part, -0)) return ['-0']
  if (!isObject(part)) return part
  const keys = Object.keys(part).sort()
  return ['{}', ...keys.flatMap((key) => [key, part[key]])]
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Assigning to `__proto__` would lose the value. */
function set(object: JsonObject, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}
