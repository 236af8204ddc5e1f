import type { JsonObject } from '../../lib/json/json.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'

/** Creates a reply from a JSON object, or from its text. */
export function jsonReply(status: number, json: JsonObject | string, headers: Headers = {}): Reply {
  const text = typeof json === 'string' ? json : JSON.stringify(json)
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: Buffer.from(text) }
}

/** Reply to a request that the identity provider did not complete (RFC 6749 section 4.1.2.1). */
export const providerUnavailable: Reply = jsonReply(503, {
  error: 'temporarily_unavailable',
  error_description: 'the identity provider does not respond',
})
