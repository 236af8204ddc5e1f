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

/** What an address serves. Asked for once for each connection, so a reload may change it without reopening the port. */
export type Serving =
  | {
      readonly kind: 'http'
      readonly tls: ServerTls | undefined
      handle(request: IncomingRequest): ExchangeHandler
    }
  | {
      readonly kind: 'tcp'
      readonly tls: ServerTls | undefined
      /** Reads the server name of a TLS handshake that passes through before `connect` is called. */
      readonly readsServerName: boolean
      connect(connection: TcpConnection): void
    }
