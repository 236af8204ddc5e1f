import { GatewayError } from '../../lib/gateway-error.ts'
import type { Headers } from '../http/headers.ts'
import type { OutgoingRequest, Reply } from '../http-client/send.ts'
import { createUpstreamBody, type Flow, type UpstreamBody } from '../http-client/upstream-body.ts'
import type { PreparedRequest } from './request-head.ts'
import { cancelUpload, type Upload } from './upload.ts'

/** State of one request, from its admission to the end of its response. */
export type Call = {
  readonly request: OutgoingRequest
  readonly prepared: PreparedRequest
  /** Present with a streaming request body. */
  readonly upload: Upload | undefined
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: GatewayError) => void
  /** Called once, before the end is reported. */
  readonly over: () => void
  /** Closes the connection that the call was sent on. */
  disconnect: (() => void) | undefined
  /** Limit of the wait for the response head, if the request sets one; else of that for a connection. */
  timer: NodeJS.Timeout | undefined
  isOver: boolean
  /** Reply whose head has arrived, before its delivery. */
  undelivered: Reply | undefined
  /** First piece of the body of an undelivered reply. */
  firstPiece: Uint8Array | undefined
  /** Present after the delivery of a reply with a streaming body. */
  body: UpstreamBody | undefined
  informational: number
  hasRepeated: boolean
}

/** Limit of informational responses (1xx) per call. Servers send one or two, or some as progress. */
const maxInformational = 100

export function createCall(
  request: OutgoingRequest,
  prepared: PreparedRequest,
  { upload, resolve, reject, over }: Pick<Call, 'upload' | 'resolve' | 'reject' | 'over'>,
): Call {
  return {
    request,
    prepared,
    upload,
    resolve,
    reject,
    over,
    disconnect: undefined,
    timer: undefined,
    isOver: false,
    undelivered: undefined,
    firstPiece: undefined,
    body: undefined,
    informational: 0,
    hasRepeated: false,
  }
}

/** Ends the wait for a connection. */
export function startCall(call: Call, disconnect: () => void): void {
  call.disconnect = disconnect
  if (call.request.firstByteTimeoutMs !== undefined) return
  clearTimeout(call.timer)
  call.timer = undefined
}

/** Returns an error after too many informational responses. */
export function receiveInformational(call: Call, status: number, headers: Headers): GatewayError | undefined {
  call.informational += 1
  if (call.informational > maxInformational) {
    return new GatewayError('upstream_invalid', 'the upstream sent too many informational responses')
  }
  call.request.onInformational?.(status, headers)
  return undefined
}

export function receiveHead(call: Call, status: number, headers: Headers): void {
  clearTimeout(call.timer)
  call.undelivered = { status, headers, body: undefined }
}

/** Whether the reply may wait for a body that arrives with the head. */
export function acceptsWhole({ request }: Call): boolean {
  // A response to HEAD has the length of a body that it does not contain.
  return request.acceptsWhole === true && request.method !== 'HEAD'
}

/** Stores the first piece of the body of an undelivered reply. Returns false for any other piece. */
export function storePiece(call: Call, bytes: Uint8Array): boolean {
  if (call.body !== undefined || call.firstPiece !== undefined) return false
  call.firstPiece = bytes
  return true
}

/** Delivers the reply with a streaming body. */
export function deliver(call: Call, flow: Flow): void {
  const { undelivered, firstPiece } = call
  if (undelivered === undefined) return
  const body = createUpstreamBody(flow, () => finish(call))
  call.body = body
  call.undelivered = undefined
  call.firstPiece = undefined
  undelivered.body = body
  if (firstPiece !== undefined) body.write(firstPiece)
  call.resolve(undelivered)
}

/** Ends the body, or delivers the reply with its complete body. */
export function receiveEnd(call: Call, trailers: Headers | undefined): void {
  const { undelivered, body } = call
  finish(call)
  body?.end(trailers)
  if (undelivered === undefined) return
  call.undelivered = undefined
  undelivered.body = call.firstPiece
  call.resolve(undelivered)
}

export function receiveTunnel(call: Call, reply: Reply): void {
  finish(call)
  call.resolve(reply)
}

/** Ends a call with an error, unless it is over. */
export function failCall(call: Call, error: GatewayError): void {
  if (call.isOver) return
  const { body } = call
  finish(call)
  call.undelivered = undefined
  if (body === undefined) call.reject(error)
  else body.fail(error)
}

/** Ends a call with an error, and the connection that it was sent on. */
export function abortCall(call: Call, error: GatewayError): void {
  if (call.isOver) return
  const { disconnect } = call
  failCall(call, error)
  disconnect?.()
}

function finish(call: Call): void {
  if (call.isOver) return
  call.isOver = true
  clearTimeout(call.timer)
  if (call.upload !== undefined) cancelUpload(call.upload)
  call.over()
}
