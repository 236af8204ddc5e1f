import type { Socket } from 'node:net'
import { plainAddress } from '../../lib/address/cidr.ts'
import { clientNetwork } from '../../lib/address/client-network.ts'
import { type AddressScope, addressScope } from '../../lib/address/scope.ts'
import type { TlsIdentity } from '../tls/server-tls.ts'

/**
 * One accepted connection. Made once, after TLS, before its first request; every later check reads this record and never the
 * socket, so that no check can see another server name or address than the one before it.
 */
export type Connection = {
  /** Peer address in plain form (IPv4-mapped addresses as IPv4); empty if the peer has disconnected. */
  readonly address: string
  readonly port: number
  readonly peerScope: AddressScope
  /** Address of the gateway that the peer connected to. */
  readonly localAddress: string
  readonly localPort: number
  readonly localScope: AddressScope
  readonly scheme: 'http' | 'https'
  /** Server name of the TLS handshake in lower case; the name that `identity` was chosen for. */
  readonly serverName: string | undefined
  /** Certificate and client rules of the TLS handshake; undefined without TLS, and where TLS passes through. */
  readonly identity: TlsIdentity | undefined
}

/** TLS facts of a connection. */
export type ConnectionTls = Pick<Connection, 'serverName' | 'identity'>

export const withoutTls: ConnectionTls = { serverName: undefined, identity: undefined }

/** The addresses of a connection as a socket reports them. */
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
 * A peer at the gateway's own address is on this machine, and one in its IPv6 network is a neighbour, although both may have public
 * addresses: browsers of this machine and of its network have them in IPv6.
 */
function scopeOfPeer(address: string, localAddress: string): AddressScope {
  const scope = addressScope(address)
  if (scope === 'loopback' || address === '') return scope
  if (address === localAddress) return 'loopback'
  return clientNetwork(address) === clientNetwork(localAddress) ? 'private' : scope
}
