import type { ApiObject } from '../../client/client.ts'
import { type ReadKind, readKindNames } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet, ReadObject } from '../../objects/object-set.ts'
import { readObject } from '../../objects/read-object.ts'

/** Objects of the API as a translation reads them. */
export type ObjectIndex = {
  /** Replaces an object; undefined removes it. */
  put(kind: ReadKind, key: ObjectKey, object: ApiObject | undefined): void
  /** The current objects. Maps of kinds without changes are those of the previous snapshot. */
  snapshot(): ObjectSet
}

export function createObjectIndex(): ObjectIndex {
  const live = new Map<ReadKind, Map<ObjectKey, ReadObject>>(readKindNames.map((kind) => [kind, new Map()]))
  const invalid = new Map<string, InvalidObject>()
  const copies: Record<string, ReadonlyMap<string, unknown>> = {}
  const stale = new Set<ReadKind | 'invalid'>([...readKindNames, 'invalid'])

  function markInvalid(id: string, mistakes: InvalidObject | undefined): void {
    if (mistakes === undefined && !invalid.has(id)) return
    if (mistakes === undefined) invalid.delete(id)
    else invalid.set(id, mistakes)
    stale.add('invalid')
  }

  return {
    put(kind, key, object) {
      const id = `${kind}/${key}`
      const objects = live.get(kind)
      stale.add(kind)
      const outcome = object === undefined ? undefined : readObject(object)
      if (outcome?.kind === 'object') objects?.set(key, outcome.object)
      else objects?.delete(key)
      markInvalid(id, outcome?.kind === 'invalid' ? outcome.invalid : undefined)
    },
    snapshot() {
      // Translations compare maps by identity, and a snapshot must not change during one.
      for (const kind of stale)
        copies[kind] = new Map<string, unknown>(kind === 'invalid' ? invalid : live.get(kind))
      stale.clear()
      // One map for each kind, with objects that `readObject` has validated.
      return { ...copies } as unknown as ObjectSet
    },
  }
}
