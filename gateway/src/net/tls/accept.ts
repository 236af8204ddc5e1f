import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { Clock } from '../../lib/clock.ts'
import type { ConnectionTls } from '../listener/connection.ts'
import { peek } from '../tcp/peek.ts'
import { describeClientCertificate, readTlsFacts } from './client-certificate.ts'
import { type ClientHello, maxClientHelloBytes, parseClientHello } from './client-hello.ts'
import type { ServerTls, TlsIdentity } from './server-tls.ts'

/** TLS termination of accepted connections. */
export type TlsAcceptor<Arrival> = (socket: Socket, tls: ServerTls, arrival: Arrival) => void

/** Receives a connection after its handshake, with the server name and identity of the handshake. */
export type Secured<Arrival> = (socket: TLSSocket, handshake: Handshake<Arrival>) => void

/** Receives a connection whose TLS is not terminated, with its ClientHello unread. */
export type PassedThrough<Arrival> = (
  socket: Socket,
  serverName: string | undefined,
  arrival: Arrival,
) => void

export type Handshake<Arrival> = ConnectionTls & {
  readonly identity: TlsIdentity
  readonly arrival: Arrival
}

/** Longest wait for a ClientHello, and for the rest of the handshake. */
export const helloLimitMs = 5_000
const handshakeLimitMs = 10_000

/** RFC 8446 section 6.2: a record with a fatal alert. */
const unrecognizedName = alert(112)
const decodeError = alert(50)

/** Sent to clients that use http instead of https. */
const plainHttpMessage = 'plain HTTP request sent to a TLS port'
const plainHttp =
  'HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n' +
  `content-length: ${plainHttpMessage.length}\r\nconnection: close\r\n\r\n${plainHttpMessage}`

/**
 * Handshakes with the identity of the server name, then calls `secured`. The name is read before OpenSSL: its
 * own callback is too late for the choice of versions and client certificate rules. After a HelloRetryRequest
 * the client sends a second ClientHello (RFC 8446 section 4.1.2); its server name must be the same, otherwise
 * the connection closes, because the identity was chosen for the first. `silent` contains connections without
 * a server name yet. Connections with a server name that passes through go to `passed`.
 */
export function createTlsAcceptor<Arrival>(
  silent: Set<Socket>,
  clock: Clock,
  { secured, passed }: { secured: Secured<Arrival>; passed: PassedThrough<Arrival> },
): TlsAcceptor<Arrival> {
  // Node emits the secured socket without its raw socket. Both have the same two addresses and ports.
  const handshakes = new Map<string, Handshake<Arrival>>()

  function begin(socket: Socket, handshake: Handshake<Arrival>, tls: ServerTls): void {
    const key = addressesOf(socket)
    if (key === undefined) {
      socket.destroy()
      return
    }
    handshakes.set(key, handshake)
    socket.on('close', () => {
      if (handshakes.get(key) === handshake) handshakes.delete(key)
    })
    serverFor(handshake.identity, tls).emit('connection', socket)
  }

  function complete(socket: TLSSocket, identity: TlsIdentity): void {
    const key = addressesOf(socket)
    const handshake = key === undefined ? undefined : handshakes.get(key)
    if (key !== undefined) handshakes.delete(key)
    const isSame = handshake?.identity === identity && hasName(socket, handshake.serverName)
    if (!isSame) {
      socket.destroy()
      return
    }
    const peer = identity.verifiesClients ? socket.getPeerX509Certificate() : undefined
    const certificate = peer && describeClientCertificate(peer, clock.now())
    if (identity.verifiesClients && (!socket.authorized || certificate === undefined)) {
      socket.destroy()
      return
    }
    const facts = readTlsFacts(socket, handshake.serverName, certificate)
    secured(socket, { ...handshake, facts, certificate })
  }

  // One server per identity, each with its own ticket keys: a session cannot be resumed under the rules of
  // another identity. Data planes derive the same keys for the same identity.
  const servers = new WeakMap<TlsIdentity, { tls: ServerTls; server: Server }>()

  function serverFor(identity: TlsIdentity, tls: ServerTls): Server {
    const known = servers.get(identity)
    const { alpn, handshakeLimitMs: limitMs = handshakeLimitMs } = tls
    if (known !== undefined && isSameServer(known.tls, tls)) return known.server
    const server = createServer({
      ...identity.settings,
      requestCert: identity.verifiesClients,
      rejectUnauthorized: identity.verifiesClients,
      handshakeTimeout: limitMs,
      ...(alpn.length > 0 ? { ALPNProtocols: [...alpn] } : {}),
    })
    server.on('secureConnection', (socket) => complete(socket, identity))
    // Node reports a failed or late handshake, and leaves the connection open.
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    servers.set(identity, { tls, server })
    return server
  }

  return (socket, tls, arrival) =>
    peek(socket, {
      limitMs: tls.handshakeLimitMs ?? helloLimitMs,
      silent,
      read: readHello,
      late: () => socket.destroy(),
      done(hello) {
        if (hello.kind !== 'hello') {
          const isHttp = isLetter(socket.read(1))
          socket.end(isHttp ? plainHttp : decodeError, () => socket.destroy())
          return
        }
        if (tls.passesThrough?.(hello.serverName) === true) {
          passed(socket, hello.serverName, arrival)
          return
        }
        const identity = tls.identityFor(hello.serverName)
        if (identity) begin(socket, { serverName: hello.serverName, identity, arrival }, tls)
        else socket.end(unrecognizedName, () => socket.destroy())
      },
    })
}

function isSameServer(one: ServerTls, other: ServerTls): boolean {
  return one.handshakeLimitMs === other.handshakeLimitMs && one.alpn.join() === other.alpn.join()
}

/** Both addresses and ports, which identify an open connection; undefined after a disconnect. */
function addressesOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string | undefined {
  if (remoteAddress === undefined || localAddress === undefined) return undefined
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/**
 * Whether the last ClientHello has this server name. In TLS 1.2 it is the first one as well, and OpenSSL has
 * no name for a resumed session.
 */
function hasName(socket: TLSSocket, serverName: string | undefined): boolean {
  const name = socket.servername ? socket.servername.toLowerCase() : undefined
  if (name === serverName) return true
  return name === undefined && socket.isSessionReused() && socket.getProtocol() === 'TLSv1.2'
}

/** The ClientHello when complete, or invalid when it cannot become complete. */
export function readHello(bytes: Buffer): ClientHello | undefined {
  const hello = parseClientHello(bytes)
  if (hello.kind !== 'incomplete') return hello
  return bytes.length < maxClientHelloBytes ? undefined : { kind: 'invalid' }
}

function alert(description: number): Buffer {
  return Buffer.from([21, 3, 1, 0, 2, 2, description])
}

function isLetter(first: unknown): boolean {
  return Buffer.isBuffer(first) && first.length === 1 && /[A-Z]/.test(first.toString('latin1'))
}
