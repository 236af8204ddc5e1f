import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { ApiObject } from '../client.ts'

/** A change of one object. Objects are immutable: a changed object is another object. */
export type ObjectChange = {
  readonly key: ObjectKey
  readonly before: ApiObject | undefined
  /** Undefined after a deletion. */
  readonly after: ApiObject | undefined
  /** Only `status` and bookkeeping of the API server differ. */
  readonly isStatusOnly: boolean
}

/** Objects of one kind by key, as the API server last reported them. */
export type ObjectStore = {
  readonly objects: ReadonlyMap<ObjectKey, ApiObject>
  put(object: ApiObject): void
  remove(object: ApiObject): void
  /** Removes the objects of a namespace (undefined: all) that are not in a complete list. */
  retain(listed: ReadonlySet<ObjectKey>, namespace: string | undefined): void
}

/** Duplicate of the whole object, written by `kubectl apply`. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** `identity` is set where list items lack it, as those of built-in kinds do. */
export function createObjectStore(
  identity: { readonly apiVersion: string; readonly kind: string },
  changed: (change: ObjectChange) => void,
): ObjectStore {
  const objects = new Map<ObjectKey, ApiObject>()

  function removeKey(key: ObjectKey): void {
    const before = objects.get(key)
    if (before === undefined) return
    objects.delete(key)
    changed({ key, before, after: undefined, isStatusOnly: false })
  }

  return {
    objects,
    put(object) {
      const key = apiKeyOf(object)
      const before = objects.get(key)
      if (before !== undefined && isSameVersion(before, object)) return
      const slim = withoutBookkeeping({ ...identity, ...object })
      const isStatusOnly = before !== undefined && isEqualApartFromStatus(before, slim)
      // Shares everything but the status with the object before: identity of parts shows what changed.
      const after = isStatusOnly ? withStatusOf(before, slim) : slim
      objects.set(key, after)
      changed({ key, before, after, isStatusOnly })
    },
    remove: (object) => removeKey(apiKeyOf(object)),
    retain(listed, namespace) {
      for (const [key, { metadata }] of objects)
        if (!listed.has(key) && (namespace === undefined || metadata['namespace'] === namespace))
          removeKey(key)
    },
  }
}

/** `<namespace>/<name>`, or `<name>`. */
export function apiKeyOf({ metadata }: ApiObject): ObjectKey {
  const { namespace, name } = metadata
  return typeof namespace === 'string' && namespace !== '' ? `${namespace}/${name}` : name
}

function isSameVersion(a: ApiObject, b: ApiObject): boolean {
  const version = a.metadata['resourceVersion']
  return version !== undefined && version === b.metadata['resourceVersion']
}

function withoutBookkeeping(object: ApiObject): ApiObject {
  const { managedFields: _, annotations, ...metadata } = object.metadata
  if (!isJsonObject(annotations) || annotations[lastApplied] === undefined)
    return { ...object, metadata: annotations === undefined ? metadata : { ...metadata, annotations } }
  const { [lastApplied]: __, ...others } = annotations
  return { ...object, metadata: { ...metadata, annotations: others } }
}

function isEqualApartFromStatus(a: ApiObject, b: ApiObject): boolean {
  return isDeepStrictEqual(comparable(a), comparable(b))
}

function comparable({ metadata, status: _, ...rest }: ApiObject): JsonObject {
  const { resourceVersion: __, ...others } = metadata
  return { ...rest, metadata: others }
}

function withStatusOf(before: ApiObject, after: ApiObject): ApiObject {
  const { status: _, ...rest } = before
  const { status, metadata } = after
  return { ...rest, metadata, ...(status !== undefined && { status }) }
}
