import type { Duplex } from 'node:stream'
import type { Cancellation } from '../../lib/cancellation.ts'
import type { EgressPolicy } from '../egress/egress.ts'
import { type Body, isSource } from '../http/body.ts'
import type { Headers } from '../http/headers.ts'
import type { KeepAliveProbes } from '../tcp/keep-alive.ts'

/** Connection settings of an origin. Compiled once; calls with equal `key` and origin share a pool. */
export type UpstreamConnection = {
  /** Represents all settings below. */
  readonly key: string
  readonly tls?: UpstreamTls | undefined
  /** `2` selects HTTP/2: by ALPN for https, else with prior knowledge. Default 1.1. */
  readonly version?: '1.1' | '2' | undefined
  readonly connectTimeoutMs?: number | undefined
  /** Maximum number of connections; more calls wait within their time limit. Default: `config.limits`. */
  readonly maxConnections?: number | undefined
  /** How long an unused connection stays open. */
  readonly keepAliveMs?: number | undefined
  /** TCP keep-alive probes. Default: the first after a minute. */
  readonly probes?: KeepAliveProbes | undefined
  /**
   * Policy on the addresses of the connection; its key is part of `key`. Default: the policy of the client.
   */
  readonly egress?: EgressPolicy | undefined
  /** Unix domain socket that is connected to instead of host and port of the origin. */
  readonly socketPath?: string | undefined
  /** HTTP proxy that connections pass. */
  readonly tunnel?: ProxyTunnel | undefined
}

/** HTTP proxy that opens connections to destinations by CONNECT. */
export type ProxyTunnel = {
  readonly host: string
  readonly port: number
  /** TLS to the proxy itself. */
  readonly tls: UpstreamTls | undefined
  /** Value of `proxy-authorization`. */
  readonly authorization: string | undefined
  /** Policy on the addresses of the proxy. */
  readonly egress: EgressPolicy
  readonly probes?: KeepAliveProbes | undefined
}

export type UpstreamTls = {
  /** PEM. Default: the authorities of the system. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Requested server name, which the certificate must have. Default: the host. */
  readonly serverName?: string | undefined
  /**
   * Accepted names of the certificate (DNS names, IP addresses or URIs), instead of the host or `serverName`.
   */
  readonly names?: readonly string[] | undefined
  /** `any` accepts every certificate, `any-name` those of trusted authorities with another name. */
  readonly insecure?: 'any' | 'any-name' | undefined
  /** Protocols offered by ALPN. Default: those of the version of HTTP. */
  readonly alpn?: readonly string[] | undefined
  /** Groups of the key exchange, as OpenSSL names them. Default: OpenSSL's. */
  readonly groups?: readonly string[] | undefined
}

/** A request of the gateway to a provider, a webhook or a key server. */
export type OutgoingRequest = {
  /** Scheme, host and port: `https://api.openai.com`. */
  origin: string
  /** Path with query, starting with a slash. */
  path: string
  method: string
  /**
   * Without `content-length`, and without `host` unless it differs from the origin: these are derived. A
   * streaming body has the length of `content-length`, if present, else it is sent in chunks.
   */
  headers: Headers
  /** Trailers of a streaming body are not forwarded. */
  body: Body | string
  /** Ends the call, also during the response body. */
  cancellation?: Cancellation
  /** Longest wait for the response head. */
  firstByteTimeoutMs?: number
  /** Longest pause in the response body. */
  idleTimeoutMs?: number
  connection?: UpstreamConnection | undefined
  /** Requested protocol upgrade (`websocket`); a 101 response has a `tunnel`. */
  upgrade?: string | undefined
  /** Receives informational responses (1xx) except 101. */
  onInformational?: ((status: number, headers: Headers) => void) | undefined
  /**
   * The request may be repeated regardless of its method: it is, when a kept-alive connection turns out
   * closed.
   */
  repeatable?: boolean | undefined
  /** Permits a buffered body in a response received in one chunk; otherwise every body is a source. */
  acceptsWhole?: boolean | undefined
}

/** Complete or streaming response, of an upstream or to a client. */
export type Reply = {
  status: number
  headers: Headers
  body: Body
  /** Credentials of the gateway in the request, which an error for the client must not show. */
  credentials?: readonly string[] | undefined
  /** The connection behind a 101 response, in its new protocol. The receiver of the reply must end it. */
  tunnel?: Duplex | undefined
}

/** Releases the resources of an unread reply. */
export function discard({ body, tunnel }: Reply): void {
  if (isSource(body)) body.cancel()
  tunnel?.destroy()
}

/**
 * Sends a request. Resolves with the response head while the body may still stream. Rejects with a
 * `GatewayError`: `upstream_connect`, `upstream_timeout` or `upstream_reset`; the same errors fail the body
 * of an aborted response.
 */
export type Send = (request: OutgoingRequest) => Promise<Reply>
