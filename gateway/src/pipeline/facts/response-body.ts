import { isSource } from '../../net/http/body.ts'
import { type DecodeErrors, decode, isPlain } from '../../net/http/content-encoding.ts'
import type { Headers } from '../../net/http/headers.ts'
import { peekBody } from '../../net/http/peek-body.ts'
import { isEventStream } from '../../net/http/sse.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../exchange.ts'
import { recordReadResponse } from './response-facts.ts'

const decodeErrors: DecodeErrors = {
  tooLarge: 'upstream_too_large',
  malformed: 'upstream_invalid',
  unknown: 'upstream_invalid',
}

/**
 * Records the reply with its body as `facts.response`, for expressions over `response.body`. The reply is
 * forwarded with the same bytes. `response.body` has no value for event streams, upgrades, bodies above
 * `maxBytes`, and bodies with an unsupported or invalid content coding. Rejects if the upstream fails.
 */
export async function recordResponseBody(exchange: Exchange, reply: Reply, maxBytes: number): Promise<Reply> {
  if (reply.tunnel !== undefined || isEventStream(reply.headers)) {
    recordReadResponse(exchange, reply, undefined)
    return reply
  }
  const read = isSource(reply.body)
    ? await peekBody(reply.body, maxBytes)
    : { kind: 'complete' as const, bytes: reply.body ?? nothing, body: reply.body }
  const isRead = read.kind === 'complete' && read.bytes.byteLength <= maxBytes
  const bytes = isRead ? await decodedOf(read.bytes, reply.headers, maxBytes) : undefined
  // Replies may be shared between requests, hence the copy.
  const forwarded = read.body === reply.body ? reply : { ...reply, body: read.body }
  recordReadResponse(exchange, forwarded, bytes)
  return forwarded
}

const nothing = new Uint8Array(0)

async function decodedOf(
  bytes: Uint8Array,
  headers: Headers,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const coding = headers['content-encoding']
  const encoding = typeof coding === 'object' ? coding.join(', ') : coding
  if (encoding === undefined || isPlain(encoding) || bytes.byteLength === 0) return bytes
  return decode(bytes, encoding, maxBytes, decodeErrors).catch(() => undefined)
}
