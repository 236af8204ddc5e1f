import { isIP, type Socket } from 'node:net'
import { plainAddress } from '../../lib/address/cidr.ts'
import { clientNetwork } from '../../lib/address/client-network.ts'
import { type AddressScope, addressScope } from '../../lib/address/scope.ts'
import type { Headers } from '../http/headers.ts'
import type { ClientCertificate, TlsFacts } from '../tls/client-certificate.ts'
import type { TlsIdentity } from '../tls/server-tls.ts'

/** The peer of a connection, as `source` of expressions: address, and facts of the TLS handshake. */
export type Source = Partial<ClientCertificate> & {
  readonly address: string
  readonly port: number
  readonly rawAddress?: string
  readonly rawPort?: number
  readonly tls?: TlsFacts
  /** Fields of the CONNECT request that the connection is within. */
  readonly connectHeaders?: Headers
}

/** A CONNECT request, whose connection continues on a listener of the gateway. */
export type Tunnel = {
  readonly host: string
  readonly port: number
  readonly headers: Headers
}

/** The address at which a peer connected, as `destination` of expressions. */
export type Destination = {
  readonly address: string
  readonly port: number
  /** Server name of the TLS handshake, if any. */
  readonly hostname?: string
}

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
  /** The same facts for expressions. */
  readonly source: Source
  readonly destination: Destination
}

/** TLS facts of a connection. */
export type ConnectionTls = Pick<Connection, 'serverName' | 'identity'> & {
  /** Facts for expressions; undefined without a terminated handshake. */
  readonly facts?: TlsFacts | undefined
  /** The verified client certificate; undefined without one. */
  readonly certificate?: ClientCertificate | undefined
}

export const withoutTls: ConnectionTls = { serverName: undefined, identity: undefined }

/** Addresses of a socket. */
export type Endpoints = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

/** Statements about a connection that its first bytes made. */
export type Origin = {
  /** Addresses that a trusted proxy reported (PROXY protocol). */
  readonly reported?: Endpoints | undefined
  readonly tunnel?: Tunnel | undefined
}

/** Describes an accepted socket. */
export function describeConnection(
  endpoints: Endpoints,
  { serverName, identity, facts, certificate }: ConnectionTls,
  { reported, tunnel }: Origin = {},
): Connection {
  const rawAddress = plainAddress(endpoints.remoteAddress ?? '')
  const rawPort = endpoints.remotePort ?? 0
  const address = reported === undefined ? rawAddress : plainAddress(reported.remoteAddress ?? '')
  const port = reported?.remotePort ?? rawPort
  const localAddress = plainAddress(endpoints.localAddress ?? '')
  const localPort = endpoints.localPort ?? 0
  return Object.freeze<Connection>({
    address,
    port,
    peerScope: scopeOfPeer(address, localAddress),
    localAddress,
    localPort,
    localScope: addressScope(localAddress),
    scheme: identity === undefined ? 'http' : 'https',
    serverName,
    identity,
    source: Object.freeze<Source>({
      address,
      port,
      rawAddress,
      rawPort,
      ...certificate,
      ...(facts === undefined ? {} : { tls: facts }),
      ...(tunnel === undefined ? {} : { connectHeaders: tunnel.headers }),
    }),
    destination: Object.freeze(destinationOf(reported ?? endpoints, serverName, tunnel)),
  })
}

function destinationOf(
  { localAddress = '', localPort = 0 }: Endpoints,
  serverName: string | undefined,
  tunnel: Tunnel | undefined,
): Destination {
  const { host = '', port = localPort } = tunnel ?? {}
  const isAddress = isIP(host) !== 0
  const hostname = serverName ?? (isAddress || host === '' ? undefined : host)
  return {
    address: plainAddress(isAddress ? host : localAddress),
    port,
    ...(hostname === undefined ? {} : { hostname }),
  }
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
