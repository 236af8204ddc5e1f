import type { Connection } from '../net/listener/connection.ts'
import type { TcpConnection } from '../net/listener/connection-handler.ts'
import type { ServerTls } from '../net/tls/server-tls.ts'
import type { RouteMeter } from '../telemetry/metrics/routes.ts'
import type { ClientReader } from './client-address.ts'
import type { ErrorFormat, MatchedRoute, RequestFacts, RouteProperties } from './exchange.ts'
import type { Backend, Policy } from './policy.ts'

/** Where a request goes: the policies it passes, in order, and who answers. */
export type Route = RouteProperties & {
  readonly policies: readonly Policy[]
  readonly backend: Backend
  readonly meter: RouteMeter
  /** Shape of refusals for a request of this route. Called once per request, so it must be cheap. */
  errorFormat(request: RequestFacts): ErrorFormat
  /** Whether paths with several readings are forwarded unchecked. */
  readonly allowsAmbiguousPaths?: boolean | undefined
}

/** One listening address, and what it serves. */
export type Listener = HttpListener | TcpListener

/** Where a listener listens. */
export type Address = {
  /** Identity across reloads: `host:port`. */
  readonly key: string
  readonly host: string
  readonly port: number
  /** Whether a peer is a trusted proxy; without it, none is. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

export type HttpListener = Address & {
  readonly kind: 'http'
  /** Undefined for plain text. */
  readonly tls: ServerTls | undefined
  /** The route of a request, or undefined for 404. */
  match(request: RequestFacts, connection: Connection): MatchedRoute<Route> | undefined
  /** Who a request comes from, seen through trusted proxies; without it, the peer is the client. */
  readonly clients?: ClientReader | undefined
}

export type TcpListener = Address & {
  readonly kind: 'tcp'
  /** Ends TLS here; undefined passes bytes on as they come. */
  readonly tls: ServerTls | undefined
  /** Without `tls`: reads the server name of the handshakes that pass through, which routes choose by. */
  readonly readsServerName?: boolean | undefined
  /** Takes over a connection, and ends it. */
  connect(connection: TcpConnection): void
}

/** A Config compiled: immutable, swapped whole. */
export type Snapshot = {
  readonly listeners: ReadonlyMap<string, Listener>
  /** Ends what a place of the configuration holds beyond requests, such as sessions; called when the place is gone. */
  readonly stops: ReadonlyMap<string, () => Promise<void>>
}
