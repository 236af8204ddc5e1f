import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ControllerMeter } from '../../telemetry/metrics/controller.ts'
import type { ApiClient, ApiObject } from '../client/client.ts'
import type { ApiError } from '../client/requests/api-error.ts'
import { createListWatch, type ListWatch } from '../client/watch/list-watch.ts'
import { createObjectStore, type ObjectChange, type ObjectStore } from '../client/watch/object-store.ts'
import { apiVersionOf, type ReadKind, readKindNames, readKinds } from '../objects/kinds.ts'
import type { ObjectKey } from '../objects/meta.ts'
import { createObjectIndex, type ObjectIndex } from './object-index.ts'

/** Objects of all kinds that a translation reads, as the API server last reported them. */
export type WatchedObjects = {
  /** Resolves once every kind is complete; kinds that are not installed count as complete. */
  readonly synced: Promise<unknown>
  /** The objects for a translation. */
  readonly snapshot: ObjectIndex['snapshot']
  /** The latest version of an object, with its status. */
  latest(kind: ReadKind, key: ObjectKey): ApiObject | undefined
  /** Kinds that are not yet complete. */
  pending(): readonly ReadKind[]
  close(): void
}

export type WatchedObjectsOptions = {
  readonly client: Pick<ApiClient, 'list' | 'watch'>
  /** Namespaces to read; undefined for all. Kinds without namespace are always read. */
  readonly namespaces: readonly string[] | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
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
    const { isNamespaced } = readKinds[kind]
    const places = isNamespaced ? (options.namespaces ?? [undefined]) : [undefined]
    const opened = places.map((namespace) => watchPlace(options, { kind, namespace, store }))
    watches.push(...opened)
    return Promise.all(opened.map(({ synced }) => synced)).then(() => pending.delete(kind))
  }

  return {
    synced: Promise.all(readKindNames.map(watchKind)),
    snapshot: index.snapshot,
    latest: (kind, key) => stores.get(kind)?.objects.get(key),
    pending: () => [...pending],
    close() {
      for (const watch of watches) watch.close()
    },
  }
}

type WatchedPlace = {
  readonly kind: ReadKind
  readonly namespace: string | undefined
  readonly store: ObjectStore
}

function watchPlace(
  { client, clock, random, log, meter }: WatchedObjectsOptions,
  { kind, namespace, store }: WatchedPlace,
): ListWatch {
  const place = { kind, ...(namespace !== undefined && { namespace }) }
  let isFailing = false
  return createListWatch({
    client,
    kind: readKinds[kind],
    namespace,
    fieldSelector: fieldSelectors[kind],
    store,
    clock,
    random,
    observer: {
      listed({ objects, durationMs }) {
        log.debug({ ...place, objects, durationMs: Math.round(durationMs) }, 'kubernetes objects listed')
        if (isFailing) log.info({ ...place, objects }, 'kubernetes watch recovered')
        isFailing = false
      },
      failed(error, retryMs) {
        meter.watchFailed(kind, watchFailureOf(error))
        // Once for each outage: retries of 16 kinds would fill the log.
        const fields = { ...place, status: error.status, error: error.message, retryMs: Math.round(retryMs) }
        if (isFailing) log.debug(fields, 'kubernetes watch failed')
        else log.warn(fields, 'kubernetes watch failed')
        isFailing = true
      },
      expired() {
        meter.watchFailed(kind, 'expired')
      },
    },
  })
}

/** Label of a failure in metrics. */
function watchFailureOf({
  status,
}: ApiError): 'connection' | 'not_found' | 'forbidden' | 'throttled' | 'other' {
  switch (status) {
    case 0:
      return 'connection'
    case 404:
      return 'not_found'
    case 401:
    case 403:
      return 'forbidden'
    case 429:
      return 'throttled'
    default:
      return 'other'
  }
}
