import type { ApiObject } from '../../client/client.ts'
import type { ListWatch } from '../../client/watch/list-watch.ts'
import { createObjectStore, type ObjectChange, type ObjectStore } from '../../client/watch/object-store.ts'
import { apiVersionOf, type ReadKind, readKindNames, readKinds } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import { createObjectIndex, type ObjectIndex } from './object-index.ts'
import { type WatchPlaceOptions, watchPlace } from './watch-place.ts'

/** Objects of all kinds that a translation reads, as the API server last reported them. */
export type WatchedObjects = {
  /** Resolves once every kind is complete; kinds that are not installed count as complete. */
  readonly synced: Promise<unknown>
  /** The objects for a translation. */
  readonly snapshot: ObjectIndex['snapshot']
  /** The latest version of an object, with its status. */
  latest(kind: ReadKind, key: ObjectKey): ApiObject | undefined
  entries(): Iterable<readonly [ReadKind, ObjectKey]>
  /** Kinds that are not yet complete. */
  pending(): readonly ReadKind[]
  close(): void
}

export type WatchedObjectsOptions = WatchPlaceOptions & {
  /** Namespaces to read; undefined for all. Kinds without namespace are always read. */
  readonly namespaces: readonly string[] | undefined
  changed(kind: ReadKind, change: ObjectChange): void
}

/** Objects that are not read: releases of Helm and tokens are large and many. */
const fieldSelectors: Partial<Record<ReadKind, string>> = {
  Secret: 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token',
  ConfigMap: 'metadata.name!=kube-root-ca.crt',
}

export function watchObjects(options: WatchedObjectsOptions): WatchedObjects {
  const { meter, changed } = options
  const index = createObjectIndex()
  const stores = new Map<ReadKind, ObjectStore>()
  const pending = new Set<ReadKind>(readKindNames)
  const watches: ListWatch[] = []

  function watchKind(kind: ReadKind): Promise<unknown> {
    const store = createObjectStore({ apiVersion: apiVersionOf(readKinds[kind]), kind }, (change) => {
      if (!change.isStatusOnly) index.put(kind, change.key, change.after)
      meter.objects(kind, store.objects.size)
      changed(kind, change)
    })
    stores.set(kind, store)
    const apiKind = readKinds[kind]
    const places = apiKind.isNamespaced ? (options.namespaces ?? [undefined]) : [undefined]
    const fieldSelector = fieldSelectors[kind]
    const opened = places.map((namespace) =>
      watchPlace(options, { kindName: kind, kind: apiKind, namespace, store, fieldSelector }),
    )
    watches.push(...opened)
    return Promise.all(opened.map(({ synced }) => synced)).then(() => pending.delete(kind))
  }

  return {
    synced: Promise.all(readKindNames.map(watchKind)),
    snapshot: index.snapshot,
    latest: (kind, key) => stores.get(kind)?.objects.get(key),
    *entries() {
      for (const [kind, { objects }] of stores) for (const key of objects.keys()) yield [kind, key]
    },
    pending: () => [...pending],
    close() {
      for (const watch of watches) watch.close()
    },
  }
}
