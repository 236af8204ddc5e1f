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
  const counterpart = counterparts(previous, next)
  const result = next.map((item, index) => shared(counterpart(item, index), item))
  const same =
    result.length === previous.length && result.every((item, index) => Object.is(item, previous[index]))
  return same ? previous : result
}

/** How to find the item of `previous` that an item of `next` continues. Looked up in maps, so that long lists stay cheap. */
function counterparts(previous: readonly unknown[], next: readonly unknown[]) {
  const property = identifyingProperty(previous, next)
  if (property !== undefined) {
    const byIdentity = new Map(previous.map((item) => [identity(item, property), item]))
    return (item: unknown) => byIdentity.get(identity(item, property))
  }
  const previousContents = previous.map(contentOf)
  const byContent = new Map(previousContents.map((content, index) => [content, previous[index]]))
  const contents = next.map(contentOf)
  const kept = new Set(contents)
  return (_item: unknown, index: number) => {
    const content = contents[index]
    if (content !== undefined && byContent.has(content)) return byContent.get(content)
    // An item that still stands elsewhere is not what this one was before.
    const before = previousContents[index]
    return before === undefined || kept.has(before) ? undefined : previous[index]
  }
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

/** A text that is equal for equal content, whatever the order of keys. */
function contentOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (isObject(part) ? sortedEntries(part) : part)) ?? ''
}

/** Objects become lists of entries. A list that happens to look the same only costs a comparison. */
function sortedEntries(object: JsonObject): unknown[] {
  const keys = Object.keys(object).sort()
  return ['{}', ...keys.flatMap((key) => [key, object[key]])]
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Assigning to `__proto__` would lose the value. */
function set(object: JsonObject, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}
