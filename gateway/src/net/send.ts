import type { Cancellation } from '../lib/cancellation.ts'
import type { Body } from './body.ts'
import type { Headers } from './headers.ts'

/** A request the gateway makes: to a provider, a webhook, a key server. */
export type OutgoingRequest = {
  /** Scheme, host and port: `https://api.openai.com`. */
  origin: string
  /** Path with query, starting with a slash. */
  path: string
  method: string
  /** Without `host` and `content-length`, which are derived. */
  headers: Headers
  body: Body | string
  /** Ends the call, also while its answer streams. */
  cancellation?: Cancellation
  /** Longest wait for the head of the answer. */
  firstByteTimeoutMs?: number
  /** Longest silence while the answer's body streams. */
  idleTimeoutMs?: number
}

/** A complete or streaming answer, of an upstream or to a client. */
export type Reply = {
  status: number
  headers: Headers
  body: Body
}

/**
 * Makes one request. Resolves with the head of the answer while its body may still be on its way.
 * Rejects with a `GatewayError`: `upstream_connect`, `upstream_timeout` or `upstream_reset`; the same
 * errors end the body of a reply that breaks off.
 */
export type Send = (request: OutgoingRequest) => Promise<Reply>
