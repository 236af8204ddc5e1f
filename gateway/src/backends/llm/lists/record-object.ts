import { ownerOf } from '../../../identity/owner.ts'
import { parseJsonObject } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { ObjectCall } from '../batches/object-call.ts'
import { isObjectEndpoint } from '../batches/object-path.ts'
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
    if (action !== 'create' || !(reply.body instanceof Uint8Array)) return
    const { id, purpose } = parseJsonObject(Buffer.from(reply.body).toString()) ?? {}
    if (typeof id !== 'string') return
    await ownedObjects.add(owner, { endpoint, id, purpose: typeof purpose === 'string' ? purpose : '' })
  } catch (error) {
    context.log.error({ err: error }, 'llm object not recorded, hence not in lists: database not available')
  }
}
