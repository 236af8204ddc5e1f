import { ownerOf } from '../../../identity/owner.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { ObjectCall } from '../batches/object-call.ts'
import { isObjectEndpoint, type ObjectAction, type ObjectEndpoint } from '../batches/object-path.ts'
import type { ReplyOptions } from '../reply/reply-body.ts'
import type { Attempt } from '../request/call.ts'

/**
 * Records an object that was created or deleted. `reply` is the response for the client. The provider has
 * the object, so that an error of the database is logged only: the object is not in lists.
 */
export async function recordObject(
  { exchange, call }: Attempt,
  { action, stored }: ObjectCall,
  reply: Reply,
  { ownedObjects, context }: ReplyOptions,
): Promise<void> {
  const { endpoint } = call
  if (ownedObjects === undefined || !isObjectEndpoint(endpoint)) return
  const owner = ownerOf(exchange)
  try {
    if (action === 'delete' && stored) await ownedObjects.remove(owner, { endpoint, id: stored.text })
    const created = reply.body instanceof Uint8Array ? createdBy(endpoint, action, reply.body) : undefined
    if (created !== undefined) await ownedObjects.add(owner, created)
  } catch (error) {
    context.log.error({ err: error }, 'llm object not recorded, hence not in lists: database not available')
  }
}

/** The object that a call has created: the last call of an upload in parts creates its file. */
function createdBy(endpoint: ObjectEndpoint, action: ObjectAction, body: Uint8Array) {
  const isUpload = endpoint === 'uploads'
  if (action !== (isUpload ? 'complete' : 'create')) return undefined
  const reply = parseJsonObject(Buffer.from(body).toString())
  const { id, purpose } = (isUpload ? objectIn(reply?.['file']) : reply) ?? {}
  if (typeof id !== 'string') return undefined
  const kind = isUpload ? 'files' : endpoint
  return { endpoint: kind, id, purpose: typeof purpose === 'string' ? purpose : '' } as const
}

function objectIn(value: JsonValue | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined
}
