import type { ApiHandler } from '../../admin/admin.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, isSource, readAll } from '../../net/http/body.ts'
import { maxBodyBytes } from '../../resources/api/read-body.ts'
import type { PlaneApiReply, PlaneApiRequest } from './plane-protocol.ts'

/** The config resource API for a data plane on a thread: `call` calls it on the main thread. */
export function createApiCaller(call: (request: PlaneApiRequest) => Promise<PlaneApiReply>): ApiHandler {
  return async ({ body, ...request }) => {
    const { body: reply, ...head } = await call({ ...request, body: await bytesOf(body) })
    return { ...head, body: reply && Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength) }
  }
}

/** Runs a call of `createApiCaller` on the main thread. */
export function serveApiCalls(api: ApiHandler): (request: PlaneApiRequest) => Promise<PlaneApiReply> {
  return async (request) => {
    const { status, headers, body } = await api(request)
    return { status, headers, body: isSource(body) ? await readAll(body, maxReplyBytes, 'internal') : body }
  }
}

/** Replies with 100,000 records have some 100 MB. */
const maxReplyBytes = 1024 * 1024 * 1024

/** The body, or one that exceeds the limit of the API in place of a larger one. */
async function bytesOf(body: Body): Promise<Uint8Array | undefined> {
  if (!isSource(body)) return body
  try {
    return await readAll(body, maxBodyBytes, 'request_too_large')
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'request_too_large')
      return new Uint8Array(maxBodyBytes + 1)
    throw error
  }
}
