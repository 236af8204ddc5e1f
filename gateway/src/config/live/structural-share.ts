import { runYielding, type YieldPoint } from '../../lib/scheduling/yielding.ts'

/**
 * Returns `next` with every part that equals its counterpart in `previous` replaced by the same object, and
 * `previous` itself if all is equal: compile results are cached by object. Counterparts of list items are
 * found by `name`, `id` or `key`, otherwise by equal content, otherwise by index. Changes neither argument.
 */
export function shareStructure<T>(previous: unknown, next: T): T {
  const steps = shared(previous, next)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value as T
  }
}

/** As `shareStructure`, in steps of a few milliseconds: comparing 10,000 routes would block traffic. */
export async function shareStructureInSteps<T>(
  previous: unknown,
  next: T,
  yieldPoint: YieldPoint,
): Promise<T> {
  return (await runYielding(shared(previous, next), yieldPoint)) as T
}

type JsonObject = Record<string, unknown>

/** Yields between units of work. */
type Steps<T> = Generator<void, T>

function* shared(previous: unknown, next: unknown): Steps<unknown> {
  if (Object.is(previous, next)) return previous
  if (Array.isArray(next)) return Array.isArray(previous) ? yield* sharedList(previous, next) : next
  if (isObject(next)) return isObject(previous) ? yield* sharedObject(previous, next) : next
  return next
}

function* sharedObject(previous: JsonObject, next: JsonObject): Steps<JsonObject> {
  const keys = Object.keys(next)
  let same = keys.length === Object.keys(previous).length
  const result: JsonObject = {}
  for (const key of keys) {
    const known = Object.hasOwn(previous, key)
    const before = known ? previous[key] : undefined
    const after = next[key]
    const value = known && isContainer(after) ? yield* shared(before, after) : after
    same &&= known && Object.is(value, before)
    set(result, key, value)
  }
  return same ? previous : result
}

function* sharedList(previous: readonly unknown[], next: readonly unknown[]): Steps<readonly unknown[]> {
  // Most items are unchanged at the same index; comparing them in place is cheaper than looking them up.
  const result: unknown[] = []
  const moved: number[] = []
  for (const [index, item] of next.entries()) {
    const before = previous[index]
    const unmoved = index < previous.length && isEqual(before, item)
    if (!unmoved) moved.push(index)
    result.push(unmoved ? before : item)
    if (!Object.is(before, item)) yield
  }
  if (moved.length === 0 && previous.length === next.length) return previous
  const counterparts =
    inPlace(previous, next, moved) ??
    (yield* byIdentity(previous, next, moved)) ??
    (yield* byContent(previous, next, moved))
  for (const [place, index] of moved.entries()) {
    result[index] = yield* shared(counterparts[place], next[index])
    yield
  }
  return result
}

/** The counterparts at the same index, if each has the name of its item: an edit without a new order. */
function inPlace(
  previous: readonly unknown[],
  next: readonly unknown[],
  moved: readonly number[],
): unknown[] | undefined {
  if (previous.length !== next.length) return undefined
  for (const index of moved) {
    const name = identity(next[index], 'name')
    if (name === undefined || identity(previous[index], 'name') !== name) return undefined
  }
  return moved.map((index) => previous[index])
}

/**
 * The counterpart in `previous` of each moved item of `next`, found by map, so that long lists cost linear
 * time. Undefined if no property identifies the items.
 */
function* byIdentity(
  previous: readonly unknown[],
  next: readonly unknown[],
  moved: readonly number[],
): Steps<unknown[] | undefined> {
  for (const property of ['name', 'id', 'key', 'keyHash']) {
    const before = yield* itemsByIdentity(previous, property)
    const after = before && (yield* itemsByIdentity(next, property))
    if (before && after) return moved.map((index) => before.get(identity(next[index], property) ?? ''))
  }
  return undefined
}

/** Undefined unless every item has the property, each with a different text. */
function* itemsByIdentity(
  items: readonly unknown[],
  property: string,
): Steps<ReadonlyMap<string, unknown> | undefined> {
  const found = new Map<string, unknown>()
  for (const item of items) {
    const value = identity(item, property)
    if (value === undefined || found.has(value)) return undefined
    found.set(value, item)
    yield
  }
  return found
}

/** As `byIdentity`, by content. Each item is a counterpart at most once: equal items are distinct. */
function* byContent(
  previous: readonly unknown[],
  next: readonly unknown[],
  moved: readonly number[],
): Steps<unknown[]> {
  // Unmoved items are their own counterparts.
  const hasMoved = new Set(moved)
  const left = new Set(previous.keys().filter((index) => index >= next.length || hasMoved.has(index)))
  const places = new Map<string, number[]>()
  for (const index of left) {
    const content = contentOf(previous[index])
    const known = places.get(content)
    if (known === undefined) places.set(content, [index])
    else known.push(index)
    yield
  }
  const found: (number | undefined)[] = []
  for (const index of moved) {
    const place = places.get(contentOf(next[index]))?.pop()
    if (place !== undefined) left.delete(place)
    found.push(place)
    yield
  }
  // An item without a counterpart at another index was edited in place.
  return moved.map((index, order) => previous[found[order] ?? (left.has(index) ? index : -1)])
}

function identity(item: unknown, property: string): string | undefined {
  if (!isObject(item)) return undefined
  const value = Object.hasOwn(item, property) ? item[property] : undefined
  return typeof value === 'string' ? value : undefined
}

/** Whether contents are equal, regardless of key order. */
function isEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (Array.isArray(one)) {
    return (
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, index) => isEqual(item, other[index]))
    )
  }
  if (!isObject(one) || !isObject(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  for (const key of keys) if (!Object.hasOwn(other, key) || !isEqual(one[key], other[key])) return false
  return true
}

/** Canonical text: identical for equal content regardless of key order, different otherwise. */
function contentOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => marked(part)) ?? ''
}

/** Tagged lists for lists and objects, and for minus zero, which JSON cannot express. */
function marked(part: unknown): unknown {
  if (Array.isArray(part)) return ['[]', ...part]
  if (Object.is(part, -0)) return ['-0']
  if (!isObject(part)) return part
  const keys = Object.keys(part).sort()
  return ['{}', ...keys.flatMap((key) => [key, part[key]])]
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An assignment to `__proto__` would lose the value. */
function set(object: JsonObject, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}
