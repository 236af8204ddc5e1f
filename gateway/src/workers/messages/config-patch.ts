/**
 * The difference between two plain values of which the second shares unchanged parts with the first. A data
 * plane applies it to its own copy, so that its unchanged parts stay the same objects too.
 */
export type Patch =
  /** Unchanged. */
  | 0
  /** Replaced by a value with the paths of its parts from the config API. */
  | { readonly value: unknown; readonly marks: readonly Path[] }
  /** Changed members of an object; `undefined` removes one. `keys` has the order if it changed. */
  | { readonly members: readonly (readonly [string, Patch | undefined])[]; readonly keys?: readonly string[] }
  | { readonly items: readonly Run[] }

/** Items of a list: copied from the previous list, or changed or new ones. */
type Run =
  | { readonly from: number; readonly count: number }
  | { readonly from: number; readonly patch: Patch }
  | { readonly value: unknown; readonly marks: readonly Path[] }

type Path = readonly (string | number)[]

/** Whether an object is marked as from the config API. Members of a marked object are marked too. */
type IsMarked = (node: object) => boolean

type JsonObject = Record<string, unknown>

/** Properties that identify items of lists, as in `shareStructure`. */
const identities = ['name', 'id', 'key', 'keyHash'] as const

/** Creates the patch from `previous` to `next`. The cost depends on the lists and the changed parts. */
export function diffConfig(previous: unknown, next: unknown, isMarked: IsMarked): Patch {
  if (Object.is(previous, next)) return 0
  // A change of the mark replaces the part: marks belong to objects.
  if (isContainer(previous) && isContainer(next) && isMarked(previous) === isMarked(next)) {
    if (Array.isArray(previous) && Array.isArray(next)) return diffLists(previous, next, isMarked)
    if (isObject(previous) && isObject(next)) return diffObjects(previous, next, isMarked)
  }
  return replacement(next, isMarked)
}

/** Applies a patch. Unchanged parts of the result are the same objects. `mark` marks a part of the result. */
export function applyPatch(previous: unknown, patch: Patch, mark: (part: unknown) => void): unknown {
  if (patch === 0) return previous
  if ('value' in patch) return replaced(patch, mark)
  if ('members' in patch) return patchedObject(previous as JsonObject, patch, mark)
  const list = previous as readonly unknown[]
  return patch.items.flatMap((run) => {
    if ('count' in run) return list.slice(run.from, run.from + run.count)
    return 'patch' in run ? [applyPatch(list[run.from], run.patch, mark)] : [replaced(run, mark)]
  })
}

function diffObjects(previous: JsonObject, next: JsonObject, isMarked: IsMarked): Patch {
  const members: [string, Patch | undefined][] = []
  const before = Object.keys(previous)
  const keys = Object.keys(next)
  for (const key of before) if (!Object.hasOwn(next, key)) members.push([key, undefined])
  for (const key of keys) {
    const patch = Object.hasOwn(previous, key)
      ? diffConfig(previous[key], next[key], isMarked)
      : replacement(next[key], isMarked)
    if (patch !== 0) members.push([key, patch])
  }
  const isReordered = keys.length !== before.length || keys.some((key, index) => before[index] !== key)
  return isReordered ? { members, keys } : { members }
}

function patchedObject(
  previous: JsonObject,
  { members, keys }: Extract<Patch, { members: unknown }>,
  mark: (part: unknown) => void,
): JsonObject {
  const values = new Map(Object.entries(previous))
  for (const [key, patch] of members) {
    if (patch === undefined) values.delete(key)
    else values.set(key, applyPatch(values.get(key), patch, mark))
  }
  // Own properties also for `__proto__`.
  return Object.fromEntries((keys ?? [...values.keys()]).map((key) => [key, values.get(key)]))
}

function diffLists(previous: readonly unknown[], next: readonly unknown[], isMarked: IsMarked): Patch {
  const shorter = Math.min(previous.length, next.length)
  let start = 0
  while (start < shorter && Object.is(previous[start], next[start])) start += 1
  let end = 0
  while (end < shorter - start && Object.is(previous.at(-1 - end), next.at(-1 - end))) end += 1
  const items: Run[] = []
  copy(items, 0, start)
  const between = previous.slice(start, previous.length - end)
  const counterpart = counterpartsIn(between)
  next.slice(start, next.length - end).forEach((item, index) => {
    const found = counterpart(item, index)
    if (found === undefined) items.push(replacement(item, isMarked))
    else if (Object.is(between[found], item)) copy(items, start + found, 1)
    else items.push({ from: start + found, patch: diffConfig(between[found], item, isMarked) })
  })
  copy(items, previous.length - end, end)
  return { items }
}

/** Adds a run of copied items, joined with the run before it. */
function copy(items: Run[], from: number, count: number): void {
  if (count === 0) return
  const last = items.at(-1)
  if (last !== undefined && 'count' in last && last.from + last.count === from)
    items[items.length - 1] = { from: last.from, count: last.count + count }
  else items.push({ from, count })
}

/** Finds the counterpart of an item: the same object, one of the same name, or that at its index. */
function counterpartsIn(items: readonly unknown[]): (item: unknown, index: number) => number | undefined {
  const places = new Map<unknown, number>()
  for (const [index, item] of items.entries()) {
    places.set(item, index)
    for (const identity of identitiesOf(item)) if (!places.has(identity)) places.set(identity, index)
  }
  return (item, index) => {
    const same = places.get(item)
    if (same !== undefined) return same
    if (!isContainer(item)) return undefined
    for (const identity of identitiesOf(item)) {
      const place = places.get(identity)
      if (place !== undefined) return place
    }
    return index < items.length && isContainer(items[index]) ? index : undefined
  }
}

function identitiesOf(item: unknown): string[] {
  if (!isObject(item)) return []
  return identities.flatMap((name) => {
    const value = Object.hasOwn(item, name) ? item[name] : undefined
    return typeof value === 'string' ? [`${name}=${value}`] : []
  })
}

function replacement(value: unknown, isMarked: IsMarked): { value: unknown; marks: Path[] } {
  const marks: Path[] = []
  collectMarks(value, [], isMarked, marks)
  return { value, marks }
}

function collectMarks(value: unknown, path: Path, isMarked: IsMarked, marks: Path[]): void {
  if (!isContainer(value)) return
  if (isMarked(value)) marks.push(path)
  else for (const [key, part] of Object.entries(value)) collectMarks(part, [...path, key], isMarked, marks)
}

function replaced(
  { value, marks }: { readonly value: unknown; readonly marks: readonly Path[] },
  mark: (part: unknown) => void,
): unknown {
  for (const path of marks) mark(path.reduce(partOf, value))
  return value
}

function partOf(value: unknown, key: string | number): unknown {
  return isContainer(value) ? Reflect.get(value, key) : undefined
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isObject(value: unknown): value is JsonObject {
  return isContainer(value) && !Array.isArray(value)
}
