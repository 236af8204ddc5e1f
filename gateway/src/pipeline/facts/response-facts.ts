import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'

/** The response: `response` of expressions. */
export type ResponseFacts = {
  readonly code: number
  /** The headers of the reply itself, so that expressions see earlier edits. */
  readonly headers: Headers
  /** The complete body without content coding; undefined if it was not read or is too large. */
  readonly body?: Uint8Array | undefined
}

type Recorded = { readonly facts: { response?: ResponseFacts | undefined } }
type RecordedReply = Pick<Reply, 'status' | 'headers'>

/**
 * Records the reply as `facts.response`, which only this file writes. Policies with expressions over
 * `response` call it in `onReply` before each evaluation, so that other routes have no cost. A body that was
 * read before is retained.
 */
export function recordResponse(exchange: Recorded, reply: RecordedReply): void {
  recordReadResponse(exchange, reply, exchange.facts.response?.body)
}

/** As `recordResponse`, in place of an earlier body; undefined for a body without a value. */
export function recordReadResponse(
  { facts }: Recorded,
  { status, headers }: RecordedReply,
  body: Uint8Array | undefined,
): void {
  const { response } = facts
  if (response?.code === status && response.headers === headers && response.body === body) return
  facts.response = { code: status, headers, body }
}

/** Removes the reply of an earlier attempt. */
export function clearResponse({ facts }: Recorded): void {
  if (facts.response !== undefined) facts.response = undefined
}
