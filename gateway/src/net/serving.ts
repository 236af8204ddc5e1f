import type { Duplex } from 'node:stream'
import type { ExchangeHandler, IncomingRequest } from './http-server.ts'
import type { ServerTls } from './server-tls.ts'

/** A connection that carries no HTTP the gateway would read. TLS, if any, has been taken off. */
export type TcpConnection = {
  readonly socket: Duplex
  /** Name the client asked for in its TLS handshake, whether TLS ends here or passes through. */
  readonly serverName: string | undefined
  readonly address: string
  readonly port: number
}

export type HttpServing = {
  readonly kind: 'http'
  readonly tls: ServerTls | undefined
  handle(request: IncomingRequest): ExchangeHandler
}

export type TcpServing = {
  readonly kind: 'tcp'
  readonly tls: ServerTls | undefined
  /** Reads the server name of a TLS handshake that passes through before `connect` is called. */
  readonly readsServerName: boolean
  /** Takes over the connection, and ends it. */
  connect(connection: TcpConnection): void
}

/** What an address serves. Asked for when a connection comes, so a reload may change it without reopening the port. */
export type Serving = HttpServing | TcpServing

/** A connection that speaks HTTP, once TLS is off it, and who answers its requests. */
export type HttpConnection = {
  readonly handle: HttpServing['handle']
  readonly scheme: 'http' | 'https'
  readonly serverName: string | undefined
  readonly address: string
  readonly port: number
}
