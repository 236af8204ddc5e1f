/** An immutable map that is cheap to derive another one from, however large it is. */
export type LayeredMap<V> = {
  readonly base: ReadonlyMap<string, V>
  /** What differs from the base; undefined is gone. */
  readonly changes: ReadonlyMap<string, V | undefined>
  readonly size: number
}

/** Differences that are carried along; more become a new base, once in so many changes. */
const maxChanges = 1_000

export function layeredMap<V>(base: ReadonlyMap<string, V>): LayeredMap<V> {
  return { base, changes: new Map(), size: base.size }
}

export function lookUp<V>({ base, changes }: LayeredMap<V>, key: string): V | undefined {
  return changes.has(key) ? changes.get(key) : base.get(key)
}

/** The map with other values for some keys; undefined takes a key away. */
export function changedMap<V>(
  map: LayeredMap<V>,
  entries: Iterable<readonly [string, V | undefined]>,
): LayeredMap<V> {
  const changes = new Map(map.changes)
  let { size } = map
  for (const [key, value] of entries) {
    const was = changes.has(key) ? changes.get(key) : map.base.get(key)
    size += Number(value !== undefined) - Number(was !== undefined)
    changes.set(key, value)
  }
  if (changes.size <= maxChanges) return { base: map.base, changes, size }
  const base = new Map(map.base)
  for (const [key, value] of changes) {
    if (value === undefined) base.delete(key)
    else base.set(key, value)
  }
  return layeredMap(base)
}
