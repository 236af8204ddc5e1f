import type { Duplex } from 'node:stream'
import type { IncomingRequest, PendingExchange } from '../http/incoming-request.ts'
import type { ServerTls } from '../tls/server-tls.ts'
import type { AdmittedConnection } from './admission.ts'
import type { Connection } from './connection.ts'

/** A connection of an opaque protocol, after TLS termination if any. */
export type TcpConnection = {
  readonly socket: Duplex
  /** Contains the server name of the client, with terminated or passed-through TLS. */
  readonly connection: Connection
}

type Address = {
  readonly tls: ServerTls | undefined
  /** Whether a peer is a trusted proxy, which forwards requests of many clients. */
  readonly isProxy?: ((address: string) => boolean) | undefined
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

/**
 * Handler of the connections of an address. Looked up per connection, so that a reload may change it without
 * a new port.
 */
export type ConnectionHandler = HttpHandler | TcpHandler

/** An HTTP connection after TLS, with the handler of its requests. */
export type HttpConnection = {
  readonly handle: HttpHandler['handle']
  readonly connection: Connection
  readonly admitted: AdmittedConnection
}
