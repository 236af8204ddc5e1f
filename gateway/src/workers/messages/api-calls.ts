import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { ApiHandler } from '../../admin/admin.ts'
import { forwardPrefix } from '../../admin/forward/forward.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, type BodySource, isSource, readAll } from '../../net/http/body.ts'
import { maxBodyBytes } from '../../resources/api/read-body.ts'
import { receiveBody, sendBody } from './body-port.ts'
import type { PlaneApiReply, PlaneApiRequest } from './plane-protocol.ts'

type CallApi = (request: PlaneApiRequest, transfer: readonly MessagePort[]) => Promise<PlaneApiReply>

/** The admin API for a data plane on a thread: `call` calls it on the main thread. */
export function createApiCaller(call: CallApi): ApiHandler {
  return async ({ body, cancellation, ...request }) => {
    const streamed = isSource(body) && request.target.startsWith(forwardPrefix) ? body : undefined
    const sent = streamed === undefined ? await bytesOf(body) : undefined
    const { port1: stream, port2 } = new MessageChannel()
    const upload = streamed === undefined ? undefined : sendingPort(streamed)
    const transfer = upload === undefined ? [port2] : [port2, upload]
    let isStreaming = false
    cancellation?.onCancel(() => {
      if (!isStreaming) stream.close()
    })
    try {
      const { body: received, ...head } = await call(
        { ...request, body: sent, stream: port2, upload },
        transfer,
      )
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

/** Sends a body through a channel; returns the port of the receiver. */
function sendingPort(body: BodySource): MessagePort {
  const { port1, port2 } = new MessageChannel()
  sendBody(body, port1)
  return port2
}

/** Runs a call of `createApiCaller` on the main thread. */
export function serveApiCalls(api: ApiHandler): (request: PlaneApiRequest) => Promise<PlaneApiReply> {
  return async ({ stream, upload, body: sent, ...request }) => {
    const cancellation = createCancellation()
    stream.on('close', cancellation.cancel)
    const uploaded = upload === undefined ? sent : receiveBody(upload)
    const { status, headers, body } = await api({ ...request, body: uploaded, cancellation })
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
