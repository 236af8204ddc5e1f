import { applyHeaderEdits } from '../../net/http/header-edits.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import { mayHaveBody } from '../../net/http-client/reply-edits.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { editsOf } from './mutations.ts'
import type { ImmediateResponse } from './wire/messages.ts'

export type ImmediateReply =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'invalid'; readonly reason: string }

/** The reply of a processor. For gRPC requests it is a response without messages. */
export function immediateReply({ facts }: Exchange, response: ImmediateResponse): ImmediateReply {
  const { grpcStatus, body } = response
  const isGrpc =
    grpcStatus !== undefined &&
    firstHeader(facts.request.headers, 'content-type')?.startsWith('application/grpc')
  const status = isGrpc ? 200 : response.status
  const hasBody = !isGrpc && body.byteLength > 0 && mayHaveBody(status)
  const headers: Headers = isGrpc
    ? grpcHeaders(grpcStatus, body)
    : hasBody
      ? { 'content-type': 'text/plain; charset=utf-8' }
      : {}
  const edits = editsOf(response.headers, headers)
  if (edits.kind === 'invalid') return edits
  applyHeaderEdits(headers, edits.edits)
  return { kind: 'reply', reply: { status, headers, body: hasBody ? body : undefined } }
}

/** Status without messages, in the headers ("Trailers-Only" of gRPC over HTTP/2). */
function grpcHeaders(status: number, message: Uint8Array): Headers {
  const headers: Headers = { 'content-type': 'application/grpc', 'grpc-status': String(status) }
  if (message.byteLength > 0) {
    headers['grpc-message'] = encodeURIComponent(Buffer.from(message).toString().slice(0, 1024))
  }
  return headers
}
