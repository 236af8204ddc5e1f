import type { Duplex } from 'node:stream'
import type { Cancellation } from '../../lib/cancellation.ts'
import type { EgressPolicy } from '../egress/egress.ts'
import { type Body, isSource } from '../http/body.ts'
import type { Headers } from '../http/headers.ts'

/** How connections to an origin are made. Compiled once; calls with the same `key` to the same origin share a pool. */
export type UpstreamConnection = {
  /** Stands for all settings below. */
  readonly key: string
  readonly tls?: UpstreamTls | undefined
  /** `2` speaks HTTP/2: by ALPN where the origin is https, else with prior knowledge. 1.1 unless said. */
  readonly version?: '1.1' | '2' | undefined
  readonly connectTimeoutMs?: number | undefined
  /** Most connections at once; more calls wait within their time limit. That of `config.limits` unless given. */
  readonly maxConnections?: number | undefined
  /** How long an unused connection stays open. */
  readonly keepAliveMs?: number | undefined
  /** Addresses the connection may lead to; its key is part of `key`. The client's own policy unless set. */
  readonly egress?: EgressPolicy | undefined
}

export type UpstreamTls = {
  /** PEM; the system's authorities unless given. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Name that is asked for and that the certificate must bear, where it is not the host. */
  readonly serverName?: string | undefined
  /** Names of which the certificate must bear one (DNS names, IP addresses or URIs), instead of the host's or `serverName`. */
  readonly names?: readonly string[] | undefined
  /** `any` accepts every certificate, `any-name` those of trusted authorities for another name. */
  readonly insecure?: 'any' | 'any-name' | undefined
}

/** A request the gateway makes: to a provider, a webhook, a key server. */
export type OutgoingRequest = {
  /** Scheme, host and port: `https://api.openai.com`. */
  origin: string
  /** Path with query, starting with a slash. */
  path: string
  method: string
  /**
   * Without `content-length`, and without `host` unless it differs from the origin's: these are derived. A body that is
   * still to come has the length that `content-length` says, if any, else it is sent in chunks.
   */
  headers: Headers
  /** Trailers of a body still to come are not sent on. */
  body: Body | string
  /** Ends the call, also while its answer streams. */
  cancellation?: Cancellation
  /** Longest wait for the head of the answer. */
  firstByteTimeoutMs?: number
  /** Longest silence while the answer's body streams. */
  idleTimeoutMs?: number
  connection?: UpstreamConnection | undefined
  /** Asks to leave HTTP for this protocol (`websocket`); a 101 answer has a `tunnel`. */
  upgrade?: string | undefined
  /** Hears of 1xx answers before the final one, 101 excepted. */
  onInformational?: ((status: number, headers: Headers) => void) | undefined
  /** Asking twice means no more than asking once, whatever the method: it is asked again when a kept connection turns out closed. */
  repeatable?: boolean | undefined
  /** Lets an answer that came in one piece have its body at hand; otherwise every answer's body is a source. */
  acceptsWhole?: boolean | undefined
}

/** A complete or streaming answer, of an upstream or to a client. */
export type Reply = {
  status: number
  headers: Headers
  body: Body
  /** With status 101: the connection, which now speaks another protocol. Whoever takes the reply ends it. */
  tunnel?: Duplex | undefined
}

/** Frees what a reply holds that nobody will read. */
export function discard({ body, tunnel }: Reply): void {
  if (isSource(body)) body.cancel()
  tunnel?.destroy()
}

/**
 * Makes one request. Resolves with the head of the answer while its body may still be on its way.
 * Rejects with a `GatewayError`: `upstream_connect`, `upstream_timeout` or `upstream_reset`; the same
 * errors end the body of a reply that breaks off.
 */
export type Send = (request: OutgoingRequest) => Promise<Reply>
