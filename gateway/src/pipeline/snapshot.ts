import type { Connection } from '../net/listener/connection.ts'
import type { ConnectionRules, TcpConnection } from '../net/listener/connection-handler.ts'
import type { ConnectionSettings } from '../net/listener/connection-settings.ts'
import type { ProxyProtocol } from '../net/listener/proxy-protocol.ts'
import type { ServerTls } from '../net/tls/server-tls.ts'
import type { RouteMeter } from '../telemetry/metrics/routes.ts'
import type { Exporter } from '../telemetry/otlp/exporter.ts'
import type { ClientReader } from './client-address.ts'
import type { ErrorFormat, MatchedRoute, RequestFacts, RouteProperties } from './exchange.ts'
import type { Backend, Policy } from './policy.ts'
import type { ExplanationLimits, RouteCandidate } from './routing/explain-route.ts'
import type { RequestTelemetry } from './tracing/tracing.ts'

/** A compiled route: its policies in order, and its backend. */
export type Route = RouteProperties & {
  readonly policies: readonly Policy[]
  readonly backend: Backend
  readonly meter: RouteMeter
  /** Error shape of refusals for a request of this route. Called once per request, so it must be cheap. */
  errorFormat(request: RequestFacts): ErrorFormat
  /** Whether paths with several readings are forwarded unchecked. */
  readonly allowsAmbiguousPaths?: boolean | undefined
  /** Selects the route of a group in place of this one; undefined for routes with backends. */
  readonly delegation?: Delegation | undefined
}

/** Selection among the routes of route groups. */
export type Delegation = {
  /** The route of a request; one that responds with 404 if none matches. */
  find(request: RequestFacts): MatchedRoute<Route>
  /** The routes that could receive the request. */
  explain(request: RequestFacts, limits?: ExplanationLimits): readonly RouteCandidate<Route>[]
}

/** A listening address with its compiled routes. */
export type Listener = HttpListener | TcpListener | ConnectListener

/** Address of a listener. */
export type Address = {
  /** Identity across reloads: `host:port`. */
  readonly key: string
  readonly host: string
  readonly port: number
  /** Whether a peer is a trusted proxy; undefined trusts none. */
  readonly isProxy?: ((address: string) => boolean) | undefined
  /** Rules on connections; undefined permits all. */
  readonly rules?: ConnectionRules | undefined
  /** Headers of the PROXY protocol; undefined reads none. */
  readonly proxyProtocol?: ProxyProtocol | undefined
  /** Settings of connections; undefined for the defaults. */
  readonly settings?: ConnectionSettings | undefined
  /** Serves connections of CONNECT requests only, without a socket. Port 0 stands for all ports. */
  readonly isInternal?: boolean | undefined
  /** Undefined without traces and changes of the access log. */
  readonly telemetry?: RequestTelemetry | undefined
}

export type HttpListener = Address & {
  readonly kind: 'http'
  /** Undefined for plain text. */
  readonly tls: ServerTls | undefined
  /** The route of a request, or undefined for 404. */
  match(request: RequestFacts, connection: Connection): MatchedRoute<Route> | undefined
  /** The listener of the host of a request, and the routes that could receive the request. */
  explain?(request: RequestFacts, limits?: ExplanationLimits): RoutingExplanation
  /** Resolves the client through trusted proxies; undefined treats the peer as the client. */
  readonly clients?: ClientReader | undefined
}

/** Selection of a route, for explanations. */
export type RoutingExplanation = {
  /** Undefined if no listener has the host. */
  readonly listener: string | undefined
  readonly candidates: readonly RouteCandidate<Route>[]
}

export type TcpListener = Address & {
  readonly kind: 'tcp'
  /** Terminates TLS, of some or all server names; undefined passes bytes through. */
  readonly tls: ServerTls | undefined
  /** Without `tls`: reads the server name (SNI) of handshakes that pass through, to select a route. */
  readonly readsServerName?: boolean | undefined
  /** Takes ownership of a connection, including its end. */
  connect(connection: TcpConnection): void
}

/** Accepts CONNECT requests, whose connections continue on the listeners of their ports. */
export type ConnectListener = Address & {
  readonly kind: 'connect'
  /** TLS of the proxy itself; undefined for plain text. */
  readonly tls: ServerTls | undefined
}

/** A compiled configuration: immutable, replaced as a whole. */
export type Snapshot = {
  readonly listeners: ReadonlyMap<string, Listener>
  /**
   * Ends resources that outlive requests, such as sessions, by config path; called when the path is removed.
   */
  readonly stops: ReadonlyMap<string, () => Promise<void>>
  /** Queue of encoded metrics for a collector; undefined without one. */
  readonly metricExport?: Exporter | undefined
}
