import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { plainAddress } from '../../lib/address/cidr.ts'
import type { Clock } from '../../lib/clock.ts'
import type { HttpServerLimits } from '../http/incoming-request.ts'
import { createHttp1 } from '../http1/http1.ts'
import { createHttp2 } from '../http2/http2.ts'
import { setProbes } from '../tcp/keep-alive.ts'
import { peek } from '../tcp/peek.ts'
import { reset } from '../tcp/splice.ts'
import { createTlsAcceptor, type Handshake, helloLimitMs, readHello } from '../tls/accept.ts'
import { satisfies } from '../tls/server-tls.ts'
import type { Admission, AdmittedConnection } from './admission.ts'
import {
  type Connection,
  type ConnectionTls,
  describeConnection,
  type Origin,
  withoutTls,
} from './connection.ts'
import type {
  ConnectHandler,
  ConnectionHandler,
  ConnectionRules,
  ConnectRequest,
  HttpHandler,
  TcpHandler,
} from './connection-handler.ts'
import { type ProxyProtocol, parseProxyHeader } from './proxy-protocol.ts'
import { openTunnel } from './tunnel.ts'

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
  const acceptTls = createTlsAcceptor<Arrival>(silent, clock, { secured: onSecured, passed: onPassedThrough })
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
    if (handler.settings?.probes) setProbes(socket, handler.settings.probes)
    socket.on('close', () => {
      connections.delete(socket)
      admitted.release()
    })
    const arrival: Arrival = { admitted, serve, origin: {}, passed: undefined }
    if (handler.proxyProtocol === undefined) enter(socket, handler, arrival)
    else acceptProxied(socket, handler.proxyProtocol, arrival)
  }

  function admit(socket: Socket, { isProxy, proxyProtocol }: ConnectionHandler) {
    const address = plainAddress(socket.remoteAddress ?? '')
    const forwards = isProxy?.(address) === true || proxyProtocol?.isTrusted(address) === true
    return admission.connect(address, forwards)
  }

  /** Reads the header of a proxy in front; headers of other peers are not read. */
  function acceptProxied(socket: Socket, settings: ProxyProtocol, arrival: Arrival) {
    const begin = (origin: Origin) => {
      const handler = serve()
      if (handler && isWithinLimits(handler, arrival.admitted, origin))
        enter(socket, handler, { ...arrival, origin })
      else socket.destroy()
    }
    if (!settings.isTrusted(plainAddress(socket.remoteAddress ?? ''))) {
      if (settings.isRequired) socket.destroy()
      else begin({})
      return
    }
    peek(socket, {
      limitMs: helloLimitMs,
      silent,
      read: (bytes) => parseProxyHeader(bytes, settings),
      late: () => socket.destroy(),
      done(header) {
        if (header.kind === 'invalid' || (header.kind === 'none' && settings.isRequired)) {
          socket.destroy()
          return
        }
        if (header.kind === 'header') socket.read(header.length)
        begin(header.kind === 'header' ? { reported: header.endpoints } : {})
      },
    })
  }

  function enter(socket: Socket, handler: ConnectionHandler, arrival: Arrival) {
    const { origin } = arrival
    const isEarly = !awaitsHandshake(handler)
    if (isEarly && !permits(handler, describeConnection(socket, withoutTls, origin))) {
      socket.destroy()
      return
    }
    const entered: Arrival = { ...arrival, passed: isEarly ? handler.rules : undefined }
    if (handler.tls) acceptTls(socket, handler.tls, entered)
    else if (handler.kind === 'http') acceptPlain(socket, handler, entered)
    else if (handler.kind === 'tcp') acceptTcp(socket, handler, entered)
    else acceptConnect(socket, handler, { tls: withoutTls, arrival: entered })
  }

  function acceptPlain(socket: Socket, handler: HttpHandler, arrival: Arrival) {
    peek(socket, {
      limitMs: limits.headersTimeoutMs,
      silent,
      read: protocolOf,
      late: () => http1.refuseLate(socket),
      done(protocol) {
        acceptHttp(protocol, socket, { handler, tls: withoutTls, arrival })
      },
    })
  }

  /**
   * Accepts a connection after its handshake. The configuration may have changed since its start, with
   * stricter demands on clients, or other rules.
   */
  function onSecured(socket: TLSSocket, { arrival, ...tls }: Handshake<Arrival>) {
    socket.on('error', ignore)
    const handler = arrival.serve()
    const present = handler?.tls?.identityFor(tls.serverName)
    if (!handler || !present || !satisfies(tls.identity, present)) {
      socket.destroy()
      return
    }
    const connection = () => describeConnection(socket, tls, arrival.origin)
    if (handler.rules !== arrival.passed && !permits(handler, connection())) socket.destroy()
    else if (handler.kind === 'tcp') handler.connect({ socket, connection: connection() })
    else if (handler.kind === 'connect') acceptConnect(socket, handler, { tls, arrival })
    else acceptHttp(socket.alpnProtocol === 'h2' ? 'h2' : 'http/1', socket, { handler, tls, arrival })
  }

  /** Accepts a connection whose TLS ends at the backend. */
  function onPassedThrough(socket: Socket, serverName: string | undefined, arrival: Arrival) {
    unread.add(socket)
    const { serve, origin, passed } = arrival
    const handler = serve()
    const connection = describeConnection(socket, { serverName, identity: undefined }, origin)
    const isServed = handler?.kind === 'tcp' && passesThrough(handler, serverName)
    if (isServed && (handler.rules === passed || permits(handler, connection)))
      handler.connect({ socket, connection })
    else socket.destroy()
  }

  function acceptHttp(protocol: Protocol, socket: Socket, { handler, tls, arrival }: Accepted) {
    const { admitted, origin } = arrival
    const connection = describeConnection(socket, tls, origin)
    const accepted = { handle: handler.handle, connection, admitted, settings: handler.settings }
    if (protocol === 'h2') http2.accept(socket, accepted)
    else http1.accept(socket, accepted)
  }

  /** Waits for a CONNECT request, whose connection continues on the listener of its port. */
  function acceptConnect(socket: Socket, handler: ConnectHandler, { tls, arrival }: Arrived) {
    const { admitted, origin } = arrival
    const connection = describeConnection(socket, tls, origin)
    const connect = (request: ConnectRequest) => {
      const tunnel = openTunnel(request, handler, connection.address)
      if (tunnel) enter(request.socket, tunnel.handler, { ...arrival, ...tunnel.arrival(origin) })
    }
    http1.accept(socket, {
      handle: handler.handle,
      connection,
      admitted,
      settings: handler.settings,
      connect,
    })
  }

  function acceptTcp(socket: Socket, handler: TcpHandler, arrival: Arrival) {
    unread.add(socket)
    if (!handler.readsServerName) {
      handler.connect({ socket, connection: describeConnection(socket, withoutTls, arrival.origin) })
      return
    }
    peek(socket, {
      limitMs: helloLimitMs,
      silent,
      read: readHello,
      late: () => socket.destroy(),
      done(hello) {
        if (hello.kind === 'hello') onPassedThrough(socket, hello.serverName, arrival)
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

/** A connection on its way to its handler. */
type Arrival = {
  readonly admitted: AdmittedConnection
  /** Returns the current handler of the address, or of the listener behind a CONNECT request. */
  serve(): ConnectionHandler | undefined
  readonly origin: Origin
  /** Rules that have permitted the connection before its handshake. */
  readonly passed: ConnectionRules | undefined
}

type Arrived = { readonly tls: ConnectionTls; readonly arrival: Arrival }
type Accepted = Arrived & { readonly handler: HttpHandler }

/** Client preface of HTTP/2 with prior knowledge (RFC 9113 section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

function protocolOf(bytes: Buffer): Protocol | undefined {
  // No HTTP/1 method in use shares more than two letters with the preface.
  if (bytes[0] !== preface[0]) return 'http/1'
  const length = Math.min(bytes.length, preface.length)
  if (bytes.compare(preface, 0, length, 0, length) !== 0) return 'http/1'
  return length === preface.length ? 'h2' : undefined
}

/** Whether the rules of a connection are evaluated after its TLS handshake, or its ClientHello. */
function awaitsHandshake(handler: ConnectionHandler): boolean {
  if (handler.rules?.awaitsHandshake !== true) return false
  return handler.tls !== undefined || (handler.kind === 'tcp' && handler.readsServerName)
}

/** Whether the listener of a server name leaves TLS to the backend. */
function passesThrough({ tls, readsServerName }: TcpHandler, serverName: string | undefined): boolean {
  return tls === undefined ? readsServerName : tls.passesThrough?.(serverName) === true
}

function permits({ rules }: ConnectionHandler, connection: Connection): boolean {
  return rules === undefined || rules.permits(connection)
}

/** Counts a connection for the client that a PROXY protocol header reports, not for the balancer. */
function isWithinLimits(
  { isProxy }: ConnectionHandler,
  admitted: AdmittedConnection,
  { reported }: Origin,
): boolean {
  if (reported === undefined) return true
  const address = plainAddress(reported.remoteAddress ?? '')
  return admitted.moveTo(address, isProxy?.(address) === true)
}

function ignore(): void {}
