import type { Socket } from 'node:net'
import { plainAddress } from '../../lib/address/cidr.ts'
import { clientNetwork } from '../../lib/address/client-network.ts'
import { type AddressScope, addressScope } from '../../lib/address/scope.ts'
import type { TlsIdentity } from '../tls/server-tls.ts'

/**
 * One accepted connection. Created once, after TLS and before the first request. Later checks read this
 * record and never the socket, so that all checks see the same server name and addresses.
 */
export type Connection = {
  /** Peer address in plain form (IPv4-mapped addresses as IPv4); empty after a disconnect. */
  readonly address: string
  readonly port: number
  readonly peerScope: AddressScope
  /** Address of the gateway at which the peer connected. */
  readonly localAddress: string
  readonly localPort: number
  readonly localScope: AddressScope
  readonly scheme: 'http' | 'https'
  /** Server name of the TLS handshake in lower case; `identity` was selected by it. */
  readonly serverName: string | undefined
  /**
   * Certificate and client rules of the TLS handshake; undefined without TLS, and with passed-through TLS.
   */
  readonly identity: TlsIdentity | undefined
}

/** TLS facts of a connection. */
export type ConnectionTls = Pick<Connection, 'serverName' | 'identity'>

export const withoutTls: ConnectionTls = { serverName: undefined, identity: undefined }

/** Addresses of a socket. */
export type Endpoints = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

/** Describes an accepted socket. */
export function describeConnection(
  endpoints: Endpoints,
  { serverName, identity }: ConnectionTls,
): Connection {
  const address = plainAddress(endpoints.remoteAddress ?? '')
  const localAddress = plainAddress(endpoints.localAddress ?? '')
  return Object.freeze<Connection>({
    address,
    port: endpoints.remotePort ?? 0,
    peerScope: scopeOfPeer(address, localAddress),
    localAddress,
    localPort: endpoints.localPort ?? 0,
    localScope: addressScope(localAddress),
    scheme: identity === undefined ? 'http' : 'https',
    serverName,
    identity,
  })
}

/**
 * Scope of a peer. A peer with the gateway's own address is on this machine, and one in its IPv6 network is a
 * neighbour, although both may have public addresses: browsers of this machine and of its network have them
 * in IPv6.
 */
function scopeOfPeer(address: string, localAddress: string): AddressScope {
  const scope = addressScope(address)
  if (scope === 'loopback' || address === '') return scope
  if (address === localAddress) return 'loopback'
  return clientNetwork(address) === clientNetwork(localAddress) ? 'private' : scope
}
