import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { plainAddress } from '../../lib/address/cidr.ts'
import type { Clock } from '../../lib/clock.ts'
import type { HttpServerLimits } from '../http/incoming-request.ts'
import { createHttp1 } from '../http1/http1.ts'
import { createHttp2 } from '../http2/http2.ts'
import { peek } from '../tcp/peek.ts'
import { reset } from '../tcp/splice.ts'
import { createTlsAcceptor, type Handshake, helloLimitMs, readHello } from '../tls/accept.ts'
import { satisfies } from '../tls/server-tls.ts'
import type { Admission, AdmittedConnection } from './admission.ts'
import { type ConnectionTls, describeConnection, withoutTls } from './connection.ts'
import type { ConnectionHandler, HttpHandler, TcpHandler } from './connection-handler.ts'

export type ListenOptions = {
  host: string
  port: number
  /** Shares the port with listeners of other threads; the system divides connections among them. */
  reusePort?: boolean
  clock: Clock
  limits: HttpServerLimits
  admission: Admission
  /** Returns the current handler of the address; undefined closes the connection. */
  serve(): ConnectionHandler | undefined
}

export type ListeningServer = {
  /** Listening port; the assigned one for port 0. */
  readonly port: number
  /** Open connections. */
  connections(): number
  /**
   * Ends each HTTP/1 connection with its next response; continues to accept. A drain closes idle connections,
   * even with a request on its way. HTTP/2 announces its end within the drain.
   */
  announceDrain(): void
  /**
   * Stops accepting and closes idle connections; resolves after the end of the last connection and its
   * requests.
   */
  drain(): Promise<void>
  /** Closes every connection immediately. */
  close(): void
}

/** Listens on an address; rejects with the error of the system (`EADDRINUSE`, `EACCES`). */
export function listen(options: ListenOptions): Promise<ListeningServer> {
  const { host, port, reusePort = false, clock, limits, admission, serve } = options
  const http1 = createHttp1({ clock, limits, admission })
  const http2 = createHttp2({ clock, limits, admission })
  const connections = new Set<Socket>()
  /** Connections of a protocol not yet detected. */
  const silent = new Set<Socket>()
  const acceptTls = createTlsAcceptor(silent, onSecured)
  /** Connections of opaque protocols, where the end of the connection is the only end of a message. */
  const unread = new WeakSet<Socket>()

  function onConnection(socket: Socket) {
    // A failed connection also closes, which is handled.
    socket.on('error', ignore)
    const handler = serve()
    const admitted = handler && admit(socket, handler)
    if (!handler || !admitted) {
      socket.destroy()
      return
    }
    connections.add(socket)
    socket.on('close', () => {
      connections.delete(socket)
      admitted.release()
    })
    if (handler.tls) acceptTls(socket, handler.tls, admitted)
    else if (handler.kind === 'http') acceptPlain(socket, handler, admitted)
    else acceptTcp(socket, handler)
  }

  function admit(socket: Socket, { isProxy }: ConnectionHandler) {
    const address = plainAddress(socket.remoteAddress ?? '')
    return admission.connect(address, isProxy?.(address) === true)
  }

  function acceptPlain(socket: Socket, handler: HttpHandler, admitted: AdmittedConnection) {
    peek(socket, {
      limitMs: limits.headersTimeoutMs,
      silent,
      read: protocolOf,
      late: () => http1.refuseLate(socket),
      done(protocol) {
        acceptHttp(protocol, socket, { handler, tls: withoutTls, admitted })
      },
    })
  }

  /**
   * Accepts a connection after its handshake. The configuration may have changed since its start, with
   * stricter demands on clients.
   */
  function onSecured(socket: TLSSocket, { admitted, ...tls }: Handshake) {
    socket.on('error', ignore)
    const handler = serve()
    const present = handler?.tls?.identityFor(tls.serverName)
    if (!handler || !present || !satisfies(tls.identity, present)) socket.destroy()
    else if (handler.kind === 'tcp') connectTcp(socket, handler, tls)
    else acceptHttp(socket.alpnProtocol === 'h2' ? 'h2' : 'http/1', socket, { handler, tls, admitted })
  }

  function acceptHttp(protocol: Protocol, socket: Socket, { handler, tls, admitted }: Accepted) {
    const accepted = { handle: handler.handle, connection: describeConnection(socket, tls), admitted }
    if (protocol === 'h2') http2.accept(socket, accepted)
    else http1.accept(socket, accepted)
  }

  function acceptTcp(socket: Socket, handler: TcpHandler) {
    unread.add(socket)
    if (!handler.readsServerName) {
      connectTcp(socket, handler, withoutTls)
      return
    }
    peek(socket, {
      limitMs: helloLimitMs,
      silent,
      read: readHello,
      late: () => socket.destroy(),
      done(hello) {
        if (hello.kind === 'hello')
          connectTcp(socket, handler, { serverName: hello.serverName, identity: undefined })
        else socket.destroy()
      },
    })
  }

  /** A server counts a connection as ended before its handlers receive `close`. */
  async function lastConnectionsTold(): Promise<void> {
    await Promise.all([...connections].map((socket) => new Promise((told) => socket.once('close', told))))
    // Effects of the cancellation are over one tick later.
    await new Promise(setImmediate)
  }

  const server = createServer({ noDelay: true, allowHalfOpen: true }, onConnection)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Without a host, Node listens on all addresses, also on a machine without IPv6, where `::` would fail.
    server.listen({ host: host === '::' ? undefined : host, port, reusePort }, () => {
      server.off('error', reject)
      resolve({
        port: (server.address() as AddressInfo).port,
        connections: () => connections.size,
        announceDrain: http1.announceDrain,
        drain: () =>
          new Promise((closed) => {
            server.close(() => {
              http1.close()
              void lastConnectionsTold().then(closed)
            })
            for (const socket of silent) socket.destroy()
            http1.drain()
            http2.drain()
          }),
        close() {
          server.close()
          http1.close()
          for (const socket of connections) {
            // Truncated data must not appear complete.
            if (unread.has(socket)) reset(socket)
            else socket.destroy()
          }
        },
      })
    })
  })
}

type Protocol = 'http/1' | 'h2'

type Accepted = {
  readonly handler: HttpHandler
  readonly tls: ConnectionTls
  readonly admitted: AdmittedConnection
}

/** Client preface of HTTP/2 with prior knowledge (RFC 9113 section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

function protocolOf(bytes: Buffer): Protocol | undefined {
  // No HTTP/1 method in use shares more than two letters with the preface.
  if (bytes[0] !== preface[0]) return 'http/1'
  const length = Math.min(bytes.length, preface.length)
  if (bytes.compare(preface, 0, length, 0, length) !== 0) return 'http/1'
  return length === preface.length ? 'h2' : undefined
}

function connectTcp(socket: Socket, { connect }: TcpHandler, tls: ConnectionTls): void {
  connect({ socket, connection: describeConnection(socket, tls) })
}

function ignore(): void {}
