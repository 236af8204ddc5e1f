import type { Cancellation } from '../../lib/cancellation.ts'
import type { Reply } from '../http-client/send.ts'
import type { Connection } from '../listener/connection.ts'
import type { BodySource } from './body.ts'
import type { Headers } from './headers.ts'

/** A received request. */
export type IncomingRequest = {
  method: string
  /** As received; not normalised. */
  target: string
  version: string
  headers: Headers
  connection: Connection
  /** Requested protocol upgrade (`websocket`), if permitted; such a request has no body. */
  upgrade: string | undefined
  /** Sends an informational response (1xx); undefined for HTTP/1.0 clients. */
  informational: ((status: number, headers: Headers) => void) | undefined
  /** Undefined without a body. */
  body: BodySource | undefined
  /** Cancelled when the connection closes before the response is complete. */
  cancellation: Cancellation
  /** `Clock.monotonic()` at the receipt of the head. */
  startedAt: number
}

/** Delivery result: completeness, status, bytes sent. */
export type Delivery = {
  /** False after a disconnect of the client or an aborted response. */
  complete: boolean
  /** Status sent, undefined before the head was sent. */
  status: number | undefined
  bytesSent: number
  /** `Clock.monotonic()` at the first byte of the body; undefined if none was sent. */
  firstByteAt: number | undefined
  /** Error that prevented the response. */
  failure?: unknown
}

/**
 * The response of a request in progress. A rejected `reply` aborts the connection; `end` is called once per
 * request, at its end.
 */
export type PendingExchange = {
  reply: Promise<Reply>
  end(delivery: Delivery): void
}

export type HttpServerLimits = {
  /** Size of a request head; more is 431. */
  maxHeaderBytes: number
  /** Length of a request target; more is 414. */
  maxTargetBytes: number
  /** Longest wait for a request head. */
  headersTimeoutMs: number
  /** Longest wait for a complete request. */
  requestTimeoutMs: number
  /** How long an idle connection stays open. */
  keepAliveMs: number
  /**
   * Longest time without progress of a client with unread data; then the response and the upstream call are
   * aborted.
   */
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

/** Message of the 414 response. */
export const targetTooLongMessage = 'the request target is too long'
