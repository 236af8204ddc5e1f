import type { ObjectMeta } from '../../objects/meta.ts'

/**
 * Lookups with their results, in surroundings such as the objects of a cluster: a translation is valid until
 * one of them changes.
 */
export type LookupRecord<Surroundings> = {
  record<T>(find: (surroundings: Surroundings) => T): T
  /** Ends the lookups, and releases the objects of their cluster: results live longer. */
  complete(): void
  /** Whether all lookups have the same results in other surroundings. */
  isCurrent(surroundings: Surroundings): boolean
}

/** Creates an empty record. */
export function createLookupRecord<Surroundings>(surroundings: Surroundings): LookupRecord<Surroundings> {
  const records: { readonly find: (surroundings: Surroundings) => unknown; readonly found: unknown }[] = []
  let current: Surroundings | undefined = surroundings
  return {
    record(find) {
      if (current === undefined) throw new Error('the lookups are complete')
      const found = find(current)
      records.push({ find, found })
      return found
    },
    complete() {
      current = undefined
    },
    isCurrent: (others) => records.every(({ find, found }) => isSame(find(others), found)),
  }
}

/** Compares results by their members, and objects of the cluster by identity. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  const entries = Object.entries(one)
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([key, value]) => Reflect.get(other, key) === value)
  )
}

type WithMeta = { readonly metadata: ObjectMeta }

/** Whether an object has all of some labels. */
export function hasLabels(
  { metadata: { labels = {} } }: WithMeta,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(
    ([name, value]) => Object.hasOwn(labels, name) && labels[name] === value,
  )
}

/** Indexes objects by namespace, sorted by name. */
export function indexByNamespace<T extends WithMeta>(
  objects: Iterable<T>,
): ReadonlyMap<string, readonly T[]> {
  const index = new Map<string, T[]>()
  for (const object of objects) {
    const { namespace = '' } = object.metadata
    const listed = index.get(namespace)
    if (listed === undefined) index.set(namespace, [object])
    else listed.push(object)
  }
  for (const listed of index.values()) listed.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  return index
}
