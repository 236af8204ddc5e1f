import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { filterDecodedHeaders, type ReplyOptions, readDecoded } from './reply-body.ts'

/** Transcripts are JSON or, with the formats `text`, `srt` and `vtt`, plain text. */
export function isPlainTranscript(endpoint: Endpoint, { headers }: Reply): boolean {
  if (endpoint !== 'transcriptions' && endpoint !== 'translations') return false
  return firstHeader(headers, 'content-type')?.includes('json') !== true
}

/** Converts a transcript in plain text. Throws `upstream_invalid` for text that guards cannot read. */
export async function convertTranscript(
  attempt: Attempt,
  reply: Reply,
  { maxReplyBytes }: ReplyOptions,
): Promise<Reply> {
  const { exchange } = attempt
  const message = exchange.llm?.message
  const body = await readDecoded(reply, maxReplyBytes)
  if (message?.readsAnswer) {
    if (!isUtf8(body))
      throw new GatewayError('upstream_invalid', 'upstream answered a text that is not UTF-8')
    const value = { text: body.toString() }
    message.answer = {
      kind: 'whole',
      json: { kind: 'object', text: JSON.stringify(value), value, hasLargeNumbers: false },
      isPlain: true,
    }
  }
  attempt.generatedBytes = body.byteLength
  attempt.succeeded = true
  return { status: reply.status, headers: filterDecodedHeaders(reply.headers), body }
}
