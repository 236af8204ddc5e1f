import { X509Certificate } from 'node:crypto'
import { connect, isIP, type Socket } from 'node:net'
import {
  connect as connectTls,
  createSecureContext,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls'
import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type EgressPolicy, guardedLookup, refusedLiteral } from '../egress/egress.ts'
import type { UpstreamTls } from '../http-client/send.ts'
import { checkCertificateNames } from '../tls/certificate-names.ts'
import { defaultProbes, type KeepAliveProbes, setProbes } from './keep-alive.ts'

/** Destination of a connection, with its TLS settings and limits. */
export type DialTarget = {
  /** A host name or an IP address. */
  readonly host: string
  readonly port: number
  readonly tls: DialTls | undefined
  /** Longest wait for name resolution, TCP and TLS together. */
  readonly timeoutMs: number
  /** Policy on the addresses of the connection. */
  readonly egress: EgressPolicy
  /** Keep-alive probes. Default: the first after a minute. */
  readonly probes?: KeepAliveProbes | undefined
}

/** TLS settings of an upstream with parsed certificates and key. */
export type DialTls = Pick<UpstreamTls, 'serverName' | 'names' | 'insecure' | 'alpn'> & {
  readonly context: SecureContext
}

/** Prepares TLS once for all connections. Throws OpenSSL's error about an unusable certificate or key. */
export function createDialTls({ ca, cert, key, groups, ...checks }: UpstreamTls): DialTls {
  // Node silently skips invalid authorities, after which no certificate would be trusted.
  if (ca !== undefined) new X509Certificate(ca)
  return {
    ...checks,
    context: createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2', ecdhCurve: groups?.join(':') }),
  }
}

/**
 * Configures a socket of an opaque protocol: no delay for coalescing, and keep-alive probes for dead peers.
 */
export function configureSocket(socket: Socket, probes: KeepAliveProbes = defaultProbes): void {
  socket.setNoDelay(true)
  setProbes(socket, probes)
}

/**
 * Opens a connection that permits half-open. Calls `done` once with the socket or an `upstream_connect`
 * error, never before this returns. The returned function cancels the attempt; `done` is not called after it.
 */
export function dial(target: DialTarget, done: (result: Socket | GatewayError) => void): () => void {
  const { host, port, tls, timeoutMs, egress } = target
  const forbidden = refusedLiteral(egress, host, port)
  if (forbidden !== undefined) {
    const answer = setImmediate(() => done(refused(forbidden)))
    return () => clearImmediate(answer)
  }
  const options = { host, port, allowHalfOpen: true, lookup: guardedLookup(egress, port) }
  const socket = tls === undefined ? connect(options) : connectTls({ ...options, ...tlsOptions(tls, host) })
  let settled = false
  const timer = setTimeout(
    () => settle(refused(new Error(`no connection within ${timeoutMs} ms`))),
    Math.min(timeoutMs, longestTimerMs),
  )

  socket.once(tls === undefined ? 'connect' : 'secureConnect', () => settle(socket))
  socket.on('error', onError)
  socket.once('close', onClose)

  function onError(error: Error) {
    settle(refused(error))
  }

  function onClose() {
    settle(refused(new Error('the connection was closed during the TLS handshake')))
  }

  function settle(result: Socket | GatewayError) {
    if (!release()) return
    if (result === socket) {
      socket.off('error', onError)
      socket.off('close', onClose)
      configureSocket(socket, target.probes)
    } else socket.destroy()
    done(result)
  }

  function release(): boolean {
    if (settled) return false
    settled = true
    clearTimeout(timer)
    return true
  }

  return () => {
    if (release()) socket.destroy()
  }
}

/** Options of the TLS handshake with a host. */
export function tlsOptions({ context, serverName, names, insecure, alpn }: DialTls, host: string) {
  // An address is not a server name (RFC 6066 section 3).
  const servername = serverName ?? (isIP(host) === 0 ? host : '')
  const options = {
    secureContext: context,
    servername,
    rejectUnauthorized: insecure !== 'any',
    ...(alpn === undefined ? {} : { ALPNProtocols: [...alpn] }),
  }
  if (insecure === 'any-name') return { ...options, checkServerIdentity: () => undefined }
  if (names === undefined) return options
  return {
    ...options,
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkCertificateNames(names, certificate),
  }
}

function refused(cause: Error): GatewayError {
  return new GatewayError('upstream_connect', 'upstream call failed: connect', { cause })
}
