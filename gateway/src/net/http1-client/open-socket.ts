import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect as connectTls,
  createSecureContext,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls'
import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type EgressPolicy, guardedLookup, refusedLiteral, refusedSocket } from '../egress/egress.ts'
import type { ConnectionPermits } from '../http-client/connection-permits.ts'
import type { ProxyTunnel, UpstreamTls } from '../http-client/send.ts'
import { defaultProbes, type KeepAliveProbes, setProbes } from '../tcp/keep-alive.ts'
import { createOpenTunnel } from '../tcp/tunnel.ts'
import { checkCertificateNames } from '../tls/certificate-names.ts'

export type SocketTarget = {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly tls: UpstreamTls | undefined
  /** Longest wait for name resolution, TCP and TLS together. */
  readonly timeoutMs: number
  readonly egress: EgressPolicy
  readonly lookup: LookupFunction | undefined
  /** Limit on the connections of all data planes. */
  readonly permits?: ConnectionPermits | undefined
  /** Keep-alive probes. Default: the first after a minute. */
  readonly probes?: KeepAliveProbes | undefined
  /** Protocols offered in the TLS handshake. Default: HTTP/1.1. */
  readonly alpn?: readonly string[] | undefined
  /** Unix domain socket that is connected to instead of host and port. */
  readonly socketPath?: string | undefined
  /** HTTP proxy that the connection passes. */
  readonly tunnel?: ProxyTunnel | undefined
}

export type OpenedSocket =
  | { readonly kind: 'open'; readonly socket: Socket }
  | { readonly kind: 'failed'; readonly error: Error }

/** An attempt to open a connection. */
export type Opening = {
  /** Whether it waits for the end of a connection in another data plane. */
  isWaiting(): boolean
  abandon(): void
}

/** Opens a connection. Calls `done` once, never before this returns, and not if the attempt is abandoned. */
export type OpenSocket = (done: (opened: OpenedSocket) => void) => Opening

type StartOpening = (done: (opened: OpenedSocket) => void) => () => void

/** Creates the function that opens connections to one origin. */
export function createOpenSocket(target: SocketTarget): OpenSocket {
  const start =
    target.tunnel === undefined ? createUnlimitedOpen(target) : createTunnelledOpen(target, target.tunnel)
  if (target.permits !== undefined) return withPermits(start, target.permits)
  return (done) => ({ isWaiting: () => false, abandon: start(done) })
}

/** Opens a connection after a permit was acquired, and releases it after the end of the connection. */
function withPermits(start: StartOpening, permits: ConnectionPermits): OpenSocket {
  return (done) => {
    let abandonStarted: (() => void) | undefined
    const withdraw = permits.acquire(() => {
      abandonStarted = start((opened) => {
        if (opened.kind === 'open') opened.socket.once('close', permits.release)
        else permits.release()
        done(opened)
      })
    })
    return {
      isWaiting: () => abandonStarted === undefined,
      abandon() {
        withdraw()
        if (abandonStarted === undefined) return
        abandonStarted()
        permits.release()
      },
    }
  }
}

function createUnlimitedOpen(target: SocketTarget): StartOpening {
  const { host, port, isSecure, timeoutMs, egress, lookup, probes = defaultProbes, socketPath } = target
  const options =
    socketPath === undefined
      ? { host, port, lookup: guardedLookup(egress, port, lookup), noDelay: true }
      : { host, path: socketPath }
  const dial = isSecure ? createTlsDial(target.tls ?? {}, target) : undefined
  return (done) => {
    const forbidden =
      socketPath === undefined ? refusedLiteral(egress, host, port) : refusedSocket(egress, socketPath)
    if (forbidden !== undefined) return later(() => done({ kind: 'failed', error: forbidden }))
    try {
      const socket = dial === undefined ? connect(options) : dial(options)
      // Applied when the socket is connected.
      if (socketPath === undefined) setProbes(socket, probes)
      return settle(socket, { event: isSecure ? 'secureConnect' : 'connect', timeoutMs }, done)
    } catch (error) {
      // An unusable certificate or key.
      return later(() =>
        done({ kind: 'failed', error: error instanceof Error ? error : new Error(String(error)) }),
      )
    }
  }
}

/** Opens connections through a proxy, with TLS to the destination inside. */
function createTunnelledOpen(target: SocketTarget, tunnel: ProxyTunnel): StartOpening {
  const { host, isSecure, timeoutMs } = target
  const openTunnel = createOpenTunnel(tunnel, target)
  const dial = isSecure ? createTlsDial(target.tls ?? {}, target) : undefined
  return (done) => {
    let abandon = openTunnel((opened) => {
      if (opened instanceof GatewayError) return done({ kind: 'failed', error: causeOf(opened) })
      opened.allowHalfOpen = false
      opened.setNoDelay(true)
      if (dial === undefined) return done({ kind: 'open', socket: opened })
      try {
        abandon = settle(dial({ host, socket: opened }), { event: 'secureConnect', timeoutMs }, done)
      } catch (error) {
        opened.destroy()
        done({ kind: 'failed', error: error instanceof Error ? error : new Error(String(error)) })
      }
    })
    return () => abandon()
  }
}

/** The client of HTTP/1.1 describes failed connections itself. */
function causeOf(error: GatewayError): Error {
  return error.cause instanceof Error ? error.cause : error
}

function later(run: () => void): () => void {
  const immediate = setImmediate(run)
  return () => clearImmediate(immediate)
}

function settle(
  socket: Socket,
  { event, timeoutMs }: { event: 'connect' | 'secureConnect'; timeoutMs: number },
  done: (opened: OpenedSocket) => void,
): () => void {
  const timer = setTimeout(
    () => fail(new Error(`no connection within ${timeoutMs} ms`)),
    Math.min(timeoutMs, longestTimerMs),
  )

  function release(): void {
    clearTimeout(timer)
    socket.off(event, open)
    socket.off('error', fail)
    socket.off('close', closed)
  }

  function open(): void {
    release()
    done({ kind: 'open', socket })
  }

  function fail(error: Error): void {
    abandon()
    done({ kind: 'failed', error })
  }

  function closed(): void {
    fail(new Error('the connection was closed during the TLS handshake'))
  }

  function abandon(): void {
    release()
    // A socket without a listener for errors would end the process.
    socket.on('error', () => {})
    socket.destroy()
  }

  socket.once(event, open)
  socket.once('error', fail)
  socket.once('close', closed)
  return abandon
}

type PlainOptions =
  | { host: string; port: number; lookup: LookupFunction }
  | { host: string; path: string }
  | { host: string; socket: Socket }

/**
 * TLS with session resumption. Only a session of a verified connection is stored: a resumed one is not
 * compared with the expected names again.
 */
function createTlsDial(
  tls: UpstreamTls,
  { host, alpn = ['http/1.1'] }: Pick<SocketTarget, 'host' | 'alpn'>,
): (options: PlainOptions) => Socket {
  const checks = certificateChecks(tls)
  // An address is not a server name (RFC 6066 section 3).
  const servername = tls.serverName ?? (isIP(host) === 0 ? host : '')
  let context: SecureContext | undefined
  let session: Buffer | undefined
  return (options) => {
    const { ca, cert, key, groups } = tls
    context ??= createSecureContext({ ca, cert, key, ecdhCurve: groups?.join(':') })
    const socket = connectTls({
      ...options,
      ...checks,
      servername,
      secureContext: context,
      ALPNProtocols: [...alpn],
      ...(session === undefined ? {} : { session }),
    })
    let isVerified = false
    let received: Buffer | undefined
    socket.on('session', (ticket) => {
      received = ticket
      if (isVerified) session = ticket
    })
    socket.once('secureConnect', () => {
      isVerified = true
      session = received ?? session
    })
    return socket
  }
}

function certificateChecks({ insecure, names }: UpstreamTls): ConnectionOptions {
  if (insecure === 'any') return { rejectUnauthorized: false }
  if (insecure === 'any-name') return { checkServerIdentity: () => undefined }
  if (names === undefined) return {}
  return {
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkCertificateNames(names, certificate),
  }
}
