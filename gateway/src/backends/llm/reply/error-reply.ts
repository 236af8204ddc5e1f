import { GatewayError } from '../../../lib/gateway-error.ts'
import { parseJsonObject } from '../../../lib/json/json.ts'
import { isLarge } from '../../../lib/json/read.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { errorBody } from '../../../pipeline/errors.ts'
import type { Attempt } from '../request/call.ts'
import { cancelReply, filterDecodedHeaders, readDecoded } from './reply-body.ts'

/**
 * Converts a provider's error response; its status is preserved. JSON in the client's API is forwarded, JSON
 * of the other API is translated, and other bodies are replaced. Throws `upstream_invalid` for redirects.
 */
export async function convertError(
  { exchange, call, candidate, translation }: Attempt,
  reply: Reply,
  maxReplyBytes: number,
): Promise<Reply> {
  const { status } = reply
  if (status < 400) {
    cancelReply(reply)
    throw new GatewayError(
      'upstream_invalid',
      `upstream answered with status ${status}; redirects are not followed`,
    )
  }
  const bytes = redactCredential(await readDecoded(reply, maxReplyBytes), candidate.target.credential)
  const headers = filterDecodedHeaders(reply.headers)
  if (call.endpoint === 'passthrough') return { status, headers, body: bytes }
  const isJson = !isLarge(bytes) && parseJsonObject(bytes.toString()) !== undefined
  if (isJson && !translation) return { status, headers, body: bytes }
  headers['content-type'] = 'application/json'
  if (isJson && translation) {
    return { status, headers, body: Buffer.from(JSON.stringify(translation.error(status, bytes.toString()))) }
  }
  const refusal = { status, code: 'upstream_error', message: `upstream answered with status ${status}` }
  return { status, headers, body: Buffer.from(errorBody(exchange.errorFormat, refusal).body) }
}

/** Some servers quote the rejected key, which is the gateway's and not the client's. */
function redactCredential(bytes: Buffer, credential: string | undefined): Buffer {
  if (credential === undefined || !bytes.includes(credential)) return bytes
  return Buffer.from(bytes.toString().replaceAll(credential, '[hidden]'))
}
