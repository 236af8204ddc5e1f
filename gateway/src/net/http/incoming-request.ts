import type { Cancellation } from '../../lib/cancellation.ts'
import type { Reply } from '../http-client/send.ts'
import type { Connection } from '../listener/connection.ts'
import type { BodySource } from './body.ts'
import type { Headers } from './headers.ts'

/** One request as it came from the wire. */
export type IncomingRequest = {
  method: string
  /** As sent; not normalised. */
  target: string
  version: string
  headers: Headers
  connection: Connection
  /** The protocol the client wants to change to (`websocket`), where it may; such a request has no body. */
  upgrade: string | undefined
  /** Sends a 1xx answer before the final one; undefined where the client's HTTP version has none. */
  informational: ((status: number, headers: Headers) => void) | undefined
  /** Undefined when the request has none. */
  body: BodySource | undefined
  /** Cancelled when the connection closes before the answer is complete. */
  cancellation: Cancellation
  /** `Clock.monotonic()` when the head had arrived. */
  startedAt: number
}

/** What became of an answer. */
export type Delivery = {
  /** False when the client left, or the answer broke off. */
  complete: boolean
  /** Status sent, or undefined when no head was sent. */
  status: number | undefined
  bytesSent: number
  /** `Clock.monotonic()` at the first byte of the body; undefined when none was sent. */
  firstByteAt: number | undefined
  /** Why the answer could not be written. */
  failure?: unknown
}

/** Answers requests. A `reply` that rejects breaks the connection; `end` is called once per request when all is over. */
export type PendingExchange = {
  reply: Promise<Reply>
  end(delivery: Delivery): void
}

export type HttpServerLimits = {
  /** Size of a request's head; more is 431. */
  maxHeaderBytes: number
  /** Length of a request's target; more is 414. */
  maxTargetBytes: number
  /** Longest wait for a request's head. */
  headersTimeoutMs: number
  /** Longest wait for a whole request; slow senders are cut off. */
  requestTimeoutMs: number
  /** How long an idle connection is kept. */
  keepAliveMs: number
  /** Longest wait for a client that reads none of what waits for it; the answer, and the upstream's, are given up. */
  stalledReaderMs: number
}

export const defaultServerLimits: HttpServerLimits = {
  maxHeaderBytes: 32 * 1024,
  maxTargetBytes: 16 * 1024,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 300_000,
  keepAliveMs: 75_000,
  stalledReaderMs: 300_000,
}

/** What a client is told whose request's target is longer than that. */
export const targetTooLongMessage = 'the request target is too long'
