import type { SecureContext } from 'node:tls'

/** One certificate and what clients must do to be served with it. */
export type TlsIdentity = {
  readonly context: SecureContext
  /** Client certificates are asked for, and must be of the configured authorities. */
  readonly verifiesClients: boolean
}

/** TLS of one address, by the server name clients ask for. */
export type ServerTls = {
  /** Undefined refuses the handshake (`unrecognized_name`). */
  identityFor(serverName: string | undefined): TlsIdentity | undefined
  /** Protocols offered by ALPN, the preferred first; none for TCP. */
  readonly alpn: readonly string[]
}
