import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { AdmittedConnection } from '../listener/admission.ts'
import type { ConnectionTls } from '../listener/connection.ts'
import { peek } from '../tcp/peek.ts'
import { type ClientHello, maxClientHelloBytes, parseClientHello } from './client-hello.ts'
import type { ServerTls, TlsIdentity } from './server-tls.ts'

/** Takes TLS off connections. */
export type TlsAcceptor = (socket: Socket, tls: ServerTls, admitted: AdmittedConnection) => void

/** Receives a connection whose handshake is complete, with the name and the identity that it was made with. */
export type Secured = (socket: TLSSocket, handshake: Handshake) => void

export type Handshake = ConnectionTls & {
  readonly identity: TlsIdentity
  readonly admitted: AdmittedConnection
}

/** Longest wait for a ClientHello, and then again for the rest of the handshake. */
export const helloLimitMs = 5_000
const handshakeLimitMs = 10_000

/** RFC 8446 section 6.2: a record with a fatal alert. */
const unrecognizedName = alert(112)
const decodeError = alert(50)

/** For those who forgot the s of https. */
const plainHttpMessage = 'plain HTTP was sent to a port that speaks TLS'
const plainHttp =
  'HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n' +
  `content-length: ${plainHttpMessage.length}\r\nconnection: close\r\n\r\n${plainHttpMessage}`

/**
 * Handshakes with the identity that belongs to the server name, then calls `secured`. The name is read before OpenSSL
 * sees the connection: its own callback for names comes too late to choose versions and rules for client certificates.
 * A client that receives a HelloRetryRequest sends a second ClientHello (RFC 8446 section 4.1.2). The server name must be the
 * same in both; otherwise the connection ends, because the identity was chosen for the first.
 * `silent` holds the connections that have not said which name they want.
 */
export function createTlsAcceptor(silent: Set<Socket>, secured: Secured): TlsAcceptor {
  // Node emits the secured socket without the one it was made from. Both have the same two addresses and ports.
  const handshakes = new Map<string, Handshake>()

  function begin(socket: Socket, handshake: Handshake, alpn: readonly string[]): void {
    const key = addressesOf(socket)
    if (key === undefined) {
      socket.destroy()
      return
    }
    handshakes.set(key, handshake)
    socket.on('close', () => {
      if (handshakes.get(key) === handshake) handshakes.delete(key)
    })
    serverFor(handshake.identity, alpn).emit('connection', socket)
  }

  function complete(socket: TLSSocket, identity: TlsIdentity): void {
    const key = addressesOf(socket)
    const handshake = key === undefined ? undefined : handshakes.get(key)
    if (key !== undefined) handshakes.delete(key)
    const isSame = handshake?.identity === identity && handshake.serverName === nameOf(socket)
    if (isSame) secured(socket, handshake)
    else socket.destroy()
  }

  // One for each identity, with ticket keys of its own: a session cannot be resumed under the rules of another identity.
  const servers = new WeakMap<TlsIdentity, { alpn: readonly string[]; server: Server }>()

  function serverFor(identity: TlsIdentity, alpn: readonly string[]): Server {
    const known = servers.get(identity)
    if (known?.alpn === alpn) return known.server
    const server = createServer({
      ...identity.settings,
      requestCert: identity.verifiesClients,
      rejectUnauthorized: identity.verifiesClients,
      handshakeTimeout: handshakeLimitMs,
      ...(alpn.length > 0 ? { ALPNProtocols: [...alpn] } : {}),
    })
    server.on('secureConnection', (socket) => complete(socket, identity))
    // Node reports a handshake that fails or takes too long, and leaves the connection open.
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    servers.set(identity, { alpn, server })
    return server
  }

  return (socket, tls, admitted) =>
    peek(socket, {
      limitMs: helloLimitMs,
      silent,
      read: readHello,
      late: () => socket.destroy(),
      done(hello) {
        if (hello.kind !== 'hello') {
          const isHttp = isLetter(socket.read(1))
          socket.end(isHttp ? plainHttp : decodeError, () => socket.destroy())
          return
        }
        const identity = tls.identityFor(hello.serverName)
        if (identity) begin(socket, { serverName: hello.serverName, identity, admitted }, tls.alpn)
        else socket.end(unrecognizedName, () => socket.destroy())
      },
    })
}

/** Both addresses and ports, which no other open connection has; undefined if the peer has disconnected. */
function addressesOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string | undefined {
  if (remoteAddress === undefined || localAddress === undefined) return undefined
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/** Server name of the last ClientHello, or of the resumed session in TLS 1.2. */
function nameOf({ servername }: TLSSocket): string | undefined {
  return servername ? servername.toLowerCase() : undefined
}

/** The ClientHello once there is a whole one, or none can come any more. */
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
