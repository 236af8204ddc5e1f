import { isIP, type Socket } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { buildConnector, Pool } from 'undici'
import { GatewayError } from '../../lib/gateway-error.ts'
import { guardedLookup, refusedLiteral, refusedSocket } from '../egress/egress.ts'
import { createOpenSocket, type OpenedSocket } from '../http1-client/open-socket.ts'
import { type KeepAliveProbes, setProbes } from '../tcp/keep-alive.ts'
import { createOpenTunnel } from '../tcp/tunnel.ts'
import { checkCertificateNames } from '../tls/certificate-names.ts'
import type { ConnectionPermits } from './connection-permits.ts'
import type { PooledOrigin, PoolSettings } from './pools.ts'
import type { UpstreamConnection, UpstreamTls } from './send.ts'
import type { CallCount } from './shared-limits.ts'

/** Connections to one origin with equal settings. */
export type Upstream = PooledOrigin & {
  readonly pool: Pool
  /**
   * TLS server name of every request: the library would use the `host` header, and reconnect for each value.
   */
  readonly serverName: string | undefined
  /** Connections opened so far: detects whether a request may have used a connection opened before it. */
  connects: number
  /** Active calls of all data planes, including those waiting for a connection. */
  readonly calls: CallCount
}

/** Maximum size of a response head, larger than of a request: cookies and content policies are long. */
const maxHeaderBytes = 64 * 1024

/** Creates a pool of HTTP/2 connections. */
export function createHttp2Upstream(
  origin: string,
  connection: UpstreamConnection,
  limits: PoolSettings,
): Upstream {
  const { tls, connectTimeoutMs, keepAliveMs, egress = limits.egress, probes, socketPath } = connection
  const maxConnections = connection.maxConnections ?? limits.maxConnections
  const { permits, calls, end } = limits.shared({ origin, key: connection.key }, maxConnections)
  const { protocol, hostname, port } = new URL(origin)
  const secure = protocol === 'https:'
  const portNumber = port === '' ? (secure ? 443 : 80) : Number(port)
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  const priorKnowledge = secure ? {} : { useH2c: true }
  const connect = buildConnector({
    allowH2: true,
    preferH2: true,
    // Prior knowledge of HTTP/2 where nothing negotiates it (RFC 9113 section 3.3).
    ...priorKnowledge,
    timeout: connectTimeoutMs ?? limits.connectTimeoutMs,
    lookup: guardedLookup(egress, portNumber, limits.lookup),
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(secure ? tlsOptions(tls) : {}),
  })
  // An address is not a server name (RFC 6066 section 3).
  const serverName = tls?.serverName ?? (isIP(host) === 0 ? host : '')
  const openTunnel =
    connection.tunnel &&
    createOpenTunnel(connection.tunnel, {
      host,
      port: portNumber,
      timeoutMs: connectTimeoutMs ?? limits.connectTimeoutMs,
      egress,
    })
  // The connector of the library offers fixed protocols.
  const openSocket =
    secure && tls?.alpn !== undefined
      ? createOpenSocket({
          ...{ host, port: portNumber, isSecure: true, tls, alpn: tls.alpn, egress, lookup: limits.lookup },
          timeoutMs: connectTimeoutMs ?? limits.connectTimeoutMs,
          socketPath,
          tunnel: connection.tunnel,
        })
      : undefined
  const pool = new Pool(origin, {
    allowH2: true,
    ...priorKnowledge,
    connections: Number.isFinite(maxConnections) ? maxConnections : null,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: keepAliveMs ?? limits.keepAliveMs,
    // A server may shorten the keep-alive time in its responses, but not extend it.
    ...(keepAliveMs === undefined ? {} : { keepAliveMaxTimeout: keepAliveMs }),
    connect(options, callback) {
      const refused =
        socketPath === undefined
          ? refusedLiteral(egress, host, portNumber)
          : refusedSocket(egress, socketPath)
      if (refused !== undefined) {
        queueMicrotask(() => callback(refused, null))
        return
      }
      const settings = secure ? { ...options, servername: serverName } : options
      const withProbes = probes === undefined ? callback : probed(callback, probes)
      const start = (connected: Connected) => {
        if (openSocket !== undefined) openSocket((opened) => report(opened, connected))
        else if (openTunnel === undefined) connect(settings, connected)
        else openTunnel((opened) => connectThrough(opened, connected))
      }
      if (permits === undefined) start(withProbes)
      else connectWithPermit(permits, start, withProbes)

      function connectThrough(opened: Socket | GatewayError, connected: Connected): void {
        if (opened instanceof GatewayError) {
          connected(opened, null)
          return
        }
        opened.allowHalfOpen = false
        if (secure) connect({ ...settings, httpSocket: opened }, connected)
        // As the library marks connections with prior knowledge.
        else connected(null, Object.assign(opened, { alpnProtocol: 'h2' }))
      }
    },
  })
  const upstream = {
    pool,
    serverName: secure ? serverName || host : undefined,
    connects: 0,
    calls,
    used: true,
    isBusy: () => pool.stats.running > 0 || pool.stats.pending > 0 || pool.stats.queued > 0,
    closeIdle(replace: () => void) {
      if (pool.stats.free > 0) replace()
    },
    close: () => pool.close(),
    destroy: () => pool.destroy(),
    left: end,
  }
  pool.on('connect', () => {
    upstream.connects += 1
  })
  return upstream
}

type Connected = buildConnector.Callback

/** Configures keep-alive probes of the connection. */
function probed(callback: Connected, probes: KeepAliveProbes): Connected {
  return (...result) => {
    const [error, socket] = result
    if (error === null && socket) setProbes(socket, probes)
    callback(...result)
  }
}

/** Connects after a permit was acquired, and releases it after the end of the connection. */
function connectWithPermit(
  permits: ConnectionPermits,
  connect: (connected: Connected) => void,
  callback: Connected,
): void {
  permits.acquire(() =>
    connect((...result) => {
      const [error, socket] = result
      if (error === null && socket) socket.once('close', permits.release)
      else permits.release()
      callback(...result)
    }),
  )
}

function report(opened: OpenedSocket, connected: Connected): void {
  if (opened.kind === 'open') connected(null, opened.socket)
  else connected(opened.error, null)
}

function tlsOptions(tls: UpstreamTls | undefined) {
  if (tls === undefined) return {}
  const { ca, cert, key, insecure, names, groups } = tls
  const checksName = insecure === undefined && names !== undefined
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(groups === undefined ? {} : { ecdhCurve: groups.join(':') }),
    ...(insecure === 'any' ? { rejectUnauthorized: false } : {}),
    ...(insecure === 'any-name' ? { checkServerIdentity: () => undefined } : {}),
    ...(checksName
      ? {
          checkServerIdentity: (_: string, certificate: PeerCertificate) =>
            checkCertificateNames(names, certificate),
        }
      : {}),
  }
}
