import type { IncomingMessage } from 'node:http'
import type { JsonObject } from '../../lib/json/json.ts'
import { type ApiKind, apiVersionOf } from '../objects/kinds.ts'
import type { ObjectMeta } from '../objects/meta.ts'
import type { ApiAccess } from './access/access.ts'
import { ApiError, hasStatus } from './requests/api-error.ts'
import { collectionPath, type ObjectPlace, objectPath } from './requests/paths.ts'
import { createSendRequest, type SendRequest, sendUntil } from './requests/send-request.ts'

/** An object of the API, validated no further than its name. */
export type ApiObject = JsonObject & { readonly metadata: JsonObject & { readonly name: string } }

/** An object to write: `apiVersion`, `kind`, `metadata` and the fields of its kind. */
export type WrittenObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'> & object
}

export type ListOptions = {
  /** Undefined for all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

/**
 * Client of an API server. Every failure is an `ApiError`, except that of an object that does not exist where
 * a method describes it as a result.
 */
export type ApiClient = {
  /** Undefined if the object does not exist. */
  get(place: ObjectPlace): Promise<ApiObject | undefined>
  /** Creates an object. The response is not validated: kinds such as TokenReview have no name. */
  create(kind: ApiKind, object: object, namespace?: string): Promise<JsonObject>
  /** Server-side apply, with the conflicts of other field managers resolved in favour of this one. */
  apply(kind: ApiKind, object: WrittenObject, fieldManager: string): Promise<ApiObject>
  /** Replaces an object, or its subresource. 409 if `metadata.resourceVersion` is not the current one. */
  replace(place: ObjectPlace, object: object): Promise<ApiObject>
  /** False if the object does not exist, or is another one than that of `uid`. */
  remove(place: ObjectPlace, options?: { readonly uid?: string | undefined }): Promise<boolean>
  /** One page of a list. */
  list(kind: ApiKind, options: ListOptions & PageOptions): Promise<ListPage>
  /** Opens a watch; its response is a line of JSON for each event. */
  watch(kind: ApiKind, options: ListOptions & WatchOptions): Promise<IncomingMessage>
  /** Sends a GET request to another path, such as `/version`. */
  read(path: string): Promise<JsonObject>
  /** The same client, whose calls and watches end at the signal. */
  until(signal: AbortSignal): ApiClient
  close(): void
}

export type PageOptions = {
  readonly limit?: number
  /** Token of the previous page. */
  readonly continuation?: string | undefined
  readonly signal?: AbortSignal
}

export type ListPage = {
  readonly items: readonly ApiObject[]
  readonly resourceVersion: string
  /** Undefined on the last page. */
  readonly continuation: string | undefined
}

export type WatchOptions = {
  readonly resourceVersion: string
  /** Life time of the watch, in seconds. */
  readonly timeoutSeconds: number
  readonly signal: AbortSignal
}

/** A page of the largest objects, 1.5 MiB each, is read with a smaller limit of objects instead. */
const maxPageBytes = 64 * 1024 * 1024
const pageTimeoutMs = 60_000

export function createApiClient(access: ApiAccess): ApiClient {
  return clientOf(createSendRequest(access))
}

function clientOf(send: SendRequest): ApiClient {
  const { call, open, close } = send
  return {
    async get(place) {
      try {
        return asObject(await call({ method: 'GET', path: objectPath(place) }))
      } catch (error) {
        if (hasStatus(error, 404)) return undefined
        throw error
      }
    },
    create: (kind, body, namespace) => call({ method: 'POST', path: collectionPath(kind, namespace), body }),
    async apply(kind, body, fieldManager) {
      const { name, namespace } = body.metadata
      const query = new URLSearchParams({ fieldManager, force: 'true' })
      const path = `${objectPath({ kind, namespace, name })}?${query}`
      // JSON is YAML.
      const contentType = 'application/apply-patch+yaml'
      return asObject(await call({ method: 'PATCH', path, body, contentType }))
    },
    replace: async (place, body) => asObject(await call({ method: 'PUT', path: objectPath(place), body })),
    async remove(place, { uid } = {}) {
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Background',
        ...(uid !== undefined && { preconditions: { uid } }),
      }
      try {
        await call({ method: 'DELETE', path: objectPath(place), body })
        return true
      } catch (error) {
        if (hasStatus(error, 404) || (uid !== undefined && hasStatus(error, 409))) return false
        throw error
      }
    },
    async list(kind, { limit, continuation, signal, ...options }) {
      const query = queryOf(options)
      if (limit !== undefined) query.set('limit', String(limit))
      if (continuation !== undefined) query.set('continue', continuation)
      const path = `${collectionPath(kind, options.namespace)}?${query}`
      const limits = { timeoutMs: pageTimeoutMs, maxBytes: maxPageBytes, ...(signal && { signal }) }
      return asPage(kind, await call({ method: 'GET', path, ...limits }))
    },
    watch(kind, { resourceVersion, timeoutSeconds, signal, ...options }) {
      const query = queryOf(options)
      query.set('watch', 'true')
      query.set('allowWatchBookmarks', 'true')
      query.set('resourceVersion', resourceVersion)
      query.set('timeoutSeconds', String(timeoutSeconds))
      return open({ method: 'GET', path: `${collectionPath(kind, options.namespace)}?${query}`, signal })
    },
    read: (path) => call({ method: 'GET', path }),
    until: (signal) => clientOf(sendUntil(send, signal)),
    close,
  }
}

function queryOf({ labelSelector, fieldSelector }: ListOptions): URLSearchParams {
  const query = new URLSearchParams()
  if (labelSelector !== undefined) query.set('labelSelector', labelSelector)
  if (fieldSelector !== undefined) query.set('fieldSelector', fieldSelector)
  return query
}

/** Whether a value is an object of the API: it has a name. */
export function isApiObject(value: unknown): value is ApiObject {
  if (typeof value !== 'object' || value === null || !('metadata' in value)) return false
  const { metadata } = value
  return (
    typeof metadata === 'object' &&
    metadata !== null &&
    'name' in metadata &&
    typeof metadata.name === 'string'
  )
}

function asObject(value: JsonObject): ApiObject {
  if (isApiObject(value)) return value
  throw new ApiError({ status: 0 }, 'response is not an object of the API: it has no metadata.name')
}

function asPage(kind: ApiKind, { items, metadata }: JsonObject): ListPage {
  const version = textAt(metadata, 'resourceVersion')
  if (!Array.isArray(items) || version === undefined)
    throw new ApiError({ status: 0 }, `list of ${apiVersionOf(kind)} ${kind.plural} has no items or version`)
  const continuation = textAt(metadata, 'continue')
  return {
    items: items.filter((item) => isApiObject(item)),
    resourceVersion: version,
    continuation: continuation === '' ? undefined : continuation,
  }
}

function textAt(value: unknown, field: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const text: unknown = Reflect.get(value, field)
  return typeof text === 'string' ? text : undefined
}
