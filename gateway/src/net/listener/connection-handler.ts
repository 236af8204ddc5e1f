import type { Duplex } from 'node:stream'
import type { IncomingRequest, PendingExchange } from '../http/incoming-request.ts'
import type { ServerTls } from '../tls/server-tls.ts'
import type { AdmittedConnection } from './admission.ts'
import type { Connection } from './connection.ts'

/** A connection that carries no HTTP the gateway would read. TLS, if any, has been taken off. */
export type TcpConnection = {
  readonly socket: Duplex
  /** Its server name is the client's, whether TLS ends here or passes through. */
  readonly connection: Connection
}

type Address = {
  readonly tls: ServerTls | undefined
  /** Whether a peer is a trusted proxy, whose connections carry the requests of many clients. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

export type HttpHandler = Address & {
  readonly kind: 'http'
  handle(request: IncomingRequest): PendingExchange
}

export type TcpHandler = Address & {
  readonly kind: 'tcp'
  /** Reads the server name of a TLS handshake that passes through before `connect` is called. */
  readonly readsServerName: boolean
  /** Takes over the connection, and ends it. */
  connect(connection: TcpConnection): void
}

/** What an address serves. Asked for when a connection comes, so a reload may change it without reopening the port. */
export type ConnectionHandler = HttpHandler | TcpHandler

/** A connection that speaks HTTP, once TLS is off it, and who answers its requests. */
export type HttpConnection = {
  readonly handle: HttpHandler['handle']
  readonly connection: Connection
  readonly admitted: AdmittedConnection
}
