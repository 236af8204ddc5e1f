import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { type ClientHello, maxClientHelloBytes, parseClientHello } from './client-hello.ts'
import { peek } from './peek.ts'
import type { ServerTls, TlsIdentity } from './server-tls.ts'

/** Takes TLS off connections. */
export type TlsAcceptor = (socket: Socket, tls: ServerTls) => void

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
 * `silent` holds the connections that have not said which name they want.
 */
export function createTlsAcceptor(silent: Set<Socket>, secured: (socket: TLSSocket) => void): TlsAcceptor {
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
    server.on('secureConnection', secured)
    servers.set(identity, { alpn, server })
    return server
  }

  return (socket, tls) =>
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
        if (identity) serverFor(identity, tls.alpn).emit('connection', socket)
        else socket.end(unrecognizedName, () => socket.destroy())
      },
    })
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
