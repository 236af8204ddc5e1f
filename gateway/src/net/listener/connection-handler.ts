import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Headers } from '../http/headers.ts'
import type { IncomingRequest, PendingExchange } from '../http/incoming-request.ts'
import type { ServerTls } from '../tls/server-tls.ts'
import type { AdmittedConnection } from './admission.ts'
import type { Connection } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import type { ProxyProtocol } from './proxy-protocol.ts'

/** A connection of an opaque protocol, after TLS termination if any. */
export type TcpConnection = {
  readonly socket: Duplex
  /** Contains the server name of the client, with terminated or passed-through TLS. */
  readonly connection: Connection
}

/** Decision on connections. */
export type ConnectionRules = {
  /** Whether the decision depends on the TLS handshake; else it precedes the handshake. */
  readonly awaitsHandshake: boolean
  /** False if the connection must be closed. */
  permits(connection: Connection): boolean
}

type Address = {
  readonly tls: ServerTls | undefined
  /** Undefined permits every connection. */
  readonly rules?: ConnectionRules | undefined
  /** Undefined reads no headers of the PROXY protocol. */
  readonly proxyProtocol?: ProxyProtocol | undefined
  /** Whether a peer is a trusted proxy, which forwards requests of many clients. */
  readonly isProxy?: ((address: string) => boolean) | undefined
  /** Undefined for the defaults. */
  readonly settings?: ConnectionSettings | undefined
}

export type HttpHandler = Address & {
  readonly kind: 'http'
  handle(request: IncomingRequest): PendingExchange
}

export type TcpHandler = Address & {
  readonly kind: 'tcp'
  /** Reads the server name of passed-through TLS before `connect` is called. */
  readonly readsServerName: boolean
  /** Takes over the connection, and must end it. */
  connect(connection: TcpConnection): void
}

export type ConnectHandler = Address & {
  readonly kind: 'connect'
  /** Responds to requests other than CONNECT. */
  handle(request: IncomingRequest): PendingExchange
  /** Returns the listener for connections to a port; undefined without one. */
  listenerAt(port: number): (() => ConnectionHandler | undefined) | undefined
  /** Reports a CONNECT request without a listener. */
  refused(client: string, port: number): void
}

/**
 * Handler of the connections of an address. Looked up per connection, so that a reload may change it without
 * a new port.
 */
export type ConnectionHandler = HttpHandler | TcpHandler | ConnectHandler

/** An HTTP connection after TLS, with the handler of its requests. */
export type HttpConnection = {
  readonly handle: HttpHandler['handle']
  readonly connection: Connection
  readonly admitted: AdmittedConnection
  readonly settings?: ConnectionSettings | undefined
  /** Takes over the connection of a CONNECT request; undefined refuses the method. */
  readonly connect?: ((request: ConnectRequest) => void) | undefined
}

/** A CONNECT request, with the bytes received behind it. */
export type ConnectRequest = {
  readonly target: string
  readonly headers: Headers
  readonly socket: Socket
  readonly head: Buffer
}
