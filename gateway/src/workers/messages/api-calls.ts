import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { ApiHandler } from '../../admin/admin.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, isSource, readAll } from '../../net/http/body.ts'
import { maxBodyBytes } from '../../resources/api/read-body.ts'
import { receiveBody, sendBody } from './body-port.ts'
import type { PlaneApiReply, PlaneApiRequest } from './plane-protocol.ts'

type CallApi = (request: PlaneApiRequest, transfer: readonly MessagePort[]) => Promise<PlaneApiReply>

/** The admin API for a data plane on a thread: `call` calls it on the main thread. */
export function createApiCaller(call: CallApi): ApiHandler {
  return async ({ body, ...request }) => {
    const sent = await bytesOf(body)
    const { port1: stream, port2 } = new MessageChannel()
    let isStreaming = false
    try {
      const { body: received, ...head } = await call({ ...request, body: sent, stream: port2 }, [port2])
      isStreaming = received === 'stream'
      if (received === 'stream') return { ...head, body: receiveBody(stream) }
      return {
        ...head,
        body: received && Buffer.from(received.buffer, received.byteOffset, received.byteLength),
      }
    } finally {
      if (!isStreaming) stream.close()
    }
  }
}

/** Runs a call of `createApiCaller` on the main thread. */
export function serveApiCalls(api: ApiHandler): (request: PlaneApiRequest) => Promise<PlaneApiReply> {
  return async ({ stream, ...request }) => {
    const { status, headers, body } = await api(request)
    if (!isSource(body)) return { status, headers, body }
    sendBody(body, stream)
    return { status, headers, body: 'stream' }
  }
}

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
