import { isSource, readAll } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { hideCredentials } from '../../../upstream/hidden-credential/hidden-credential.ts'

/** Maximum size of an unused body that is drained. */
const maxDrainedBytes = 16 * 1024

/** Headers of an error reply with meaning for clients. */
const errorHeaders = ['content-type', 'www-authenticate', 'retry-after'] as const

/** Drains a short unused body, so that its connection can be reused; cancels an event stream. */
export function discard({ body, headers }: Reply): void {
  if (!isSource(body)) return
  if (isEventStream(headers)) body.cancel()
  else readAll(body, maxDrainedBytes, 'upstream_too_large').catch(() => {})
}

/** Reads an error reply of a target, with the headers that clients receive. Throws a `GatewayError`. */
export async function readErrorReply(reply: Reply, maxBytes: number): Promise<Reply> {
  const body = hideCredentials(await readAll(reply.body, maxBytes, 'upstream_too_large'), reply.credentials)
  const headers: Headers = {}
  for (const header of errorHeaders) {
    const value = reply.headers[header]
    if (value !== undefined) headers[header] = value
  }
  return { status: reply.status, headers, body }
}
