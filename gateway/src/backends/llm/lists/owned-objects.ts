import { createHmac } from 'node:crypto'
import type { FoundObjects, ObjectQuery } from '../../../lib/planes/object-records.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ObjectEndpoint } from '../batches/object-path.ts'
import { digest, keyOf } from '../stored/sealed-ids.ts'

/** An object by its id for the client. */
export type OwnedObject = { readonly endpoint: ObjectEndpoint; readonly id: string }

/** A page of the objects of a client; `cursor` is an id. */
export type OwnedQuery = Omit<ObjectQuery, 'owner' | 'kind'>

/** Objects that clients have created. Rejects if the database is not available. */
export type OwnedObjects = {
  add(owner: string, object: OwnedObject & { readonly purpose: string }): Promise<void>
  remove(owner: string, object: OwnedObject): Promise<void>
  find(owner: string, endpoint: ObjectEndpoint, query: OwnedQuery): Promise<FoundObjects>
}

/**
 * The record of objects in the database; undefined without one. The database has encrypted ids, and digests
 * of clients with a key of the gateway.
 */
export function createOwnedObjects(context: CompileContext): OwnedObjects | undefined {
  const { objectRecords: call } = context
  if (call === undefined) return undefined
  const key = keyOf(context, 'llm-objects/1/owner')
  const hidden = (owner: string) => createHmac('sha256', key).update(owner).digest('base64url')
  const keyFor = (owner: string, { endpoint, id }: OwnedObject) => ({
    owner: hidden(owner),
    kind: endpoint,
    id: digest(id),
  })
  return {
    async add(owner, object) {
      const { id: text, purpose } = object
      await call({ kind: 'add', record: { ...keyFor(owner, object), text, purpose } })
    },
    async remove(owner, object) {
      await call({ kind: 'remove', key: keyFor(owner, object) })
    },
    find(owner, endpoint, query) {
      const cursor = query.cursor === undefined ? undefined : digest(query.cursor)
      return call({ kind: 'find', query: { ...query, cursor, owner: hidden(owner), kind: endpoint } })
    },
  }
}
