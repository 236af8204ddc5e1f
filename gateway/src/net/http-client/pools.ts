import { isIP, type LookupFunction } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { buildConnector, Pool } from 'undici'
import type { Memory } from '../../lib/planes/memory.ts'
import type { Peers } from '../../lib/planes/peers.ts'
import { type EgressPolicy, guardedLookup, refusedLiteral } from '../egress/egress.ts'
import { checkCertificateNames } from '../tls/certificate-names.ts'
import type { ConnectionPermits } from './connection-permits.ts'
import type { UpstreamConnection, UpstreamTls } from './send.ts'
import { type CallCount, createSharedLimits, type PoolName, type SharedLimits } from './shared-limits.ts'

/** Connections to one origin with equal settings. */
export type Upstream = {
  readonly pool: Pool
  /**
   * TLS server name of every request: the library would use the `host` header, and reconnect for each value.
   */
  readonly serverName: string | undefined
  /** Connections opened so far: detects whether a request may have used a connection opened before it. */
  connects: number
  /** Active calls of all data planes, including those waiting for a connection. */
  readonly calls: CallCount
  /** Used since the last check for unused pools. */
  used: boolean
  /** Called after the end of the pool. */
  left(): void
}

export type PoolLimits = {
  /** Default of the longest wait for a connection, TLS included. */
  readonly connectTimeoutMs: number
  readonly keepAliveMs: number
  /** Maximum number of pools; the least recently used is closed first. */
  readonly maxPools: number
  /** A pool is closed after one to two of these intervals without use. */
  readonly unusedMs: number
  /** Policy of connections without a policy. */
  readonly egress: EgressPolicy
  readonly lookup: LookupFunction | undefined
  /** Default of connections to one origin, and of calls in its queue, in all data planes together. */
  readonly maxConnections: number
  readonly maxQueue: number
  readonly memory: Memory
  readonly peers: Peers
}

export type Pools = {
  of(origin: string, connection: UpstreamConnection | undefined): Upstream
  readonly size: number
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

/** Maximum size of a response head, larger than of a request: cookies and content policies are long. */
const maxHeaderBytes = 64 * 1024

/** Default connection settings. */
const plain: UpstreamConnection = { key: '' }

/** Pools by connection settings and origin. Equal settings have equal keys, so pools survive reloads. */
export function createPools(limits: PoolLimits): Pools {
  const byKey = new Map<string, Map<string, Upstream>>()
  const shared = createSharedLimits(limits, closeIdle)
  /** Closing pools with calls in flight. */
  const leaving = new Set<Pool>()
  let size = 0
  let timer: NodeJS.Timeout | undefined

  function open(origin: string, connection: UpstreamConnection): Upstream {
    if (size >= limits.maxPools) closeUnused(Math.ceil(limits.maxPools / 10))
    const upstream = createUpstream(origin, connection, { ...limits, shared })
    const siblings = byKey.get(connection.key) ?? new Map<string, Upstream>()
    siblings.set(origin, upstream)
    byKey.set(connection.key, siblings)
    size += 1
    timer ??= setInterval(() => closeUnused(0), limits.unusedMs).unref()
    return upstream
  }

  function leave({ pool, left }: Upstream): void {
    leaving.add(pool)
    const end = () => {
      leaving.delete(pool)
      left()
    }
    pool.close().then(end, end)
  }

  /** Closes the idle connections of a pool; new calls use another one. Calls in flight continue. */
  function closeIdle({ key, origin }: PoolName): void {
    const upstream = byKey.get(key)?.get(origin)
    if (upstream === undefined || upstream.pool.stats.free === 0) return
    byKey.get(key)?.delete(origin)
    size -= 1
    leave(upstream)
  }

  /** Closes pools unused since the last call, and at least `atLeast`. Calls in flight continue. */
  function closeUnused(atLeast: number): void {
    let closed = 0
    for (const onlyUnused of [true, false]) {
      for (const [key, siblings] of byKey) {
        for (const [origin, upstream] of siblings) {
          if (onlyUnused ? upstream.used || isBusy(upstream.pool) : closed >= atLeast) continue
          siblings.delete(origin)
          size -= 1
          closed += 1
          leave(upstream)
        }
        if (siblings.size === 0) byKey.delete(key)
      }
    }
    for (const siblings of byKey.values()) for (const upstream of siblings.values()) upstream.used = false
  }

  return {
    of(origin, connection = plain) {
      const known = byKey.get(connection.key)?.get(origin)
      if (known === undefined) return open(origin, connection)
      known.used = true
      return known
    },
    get size() {
      return size
    },
    async close() {
      clearInterval(timer)
      timer = undefined
      const kept = [...byKey.values()].flatMap((siblings) => [...siblings.values()])
      byKey.clear()
      size = 0
      await Promise.all([...kept.map(({ pool }) => pool), ...leaving].map((pool) => pool.destroy()))
    },
  }
}

function isBusy({ stats }: Pool): boolean {
  return stats.running > 0 || stats.pending > 0 || stats.queued > 0
}

function createUpstream(
  origin: string,
  connection: UpstreamConnection,
  limits: PoolLimits & { shared: SharedLimits },
): Upstream {
  const { tls, version, connectTimeoutMs, keepAliveMs, egress = limits.egress } = connection
  const maxConnections = connection.maxConnections ?? limits.maxConnections
  const { permits, calls, end } = limits.shared({ origin, key: connection.key }, maxConnections)
  const { protocol, hostname, port } = new URL(origin)
  const secure = protocol === 'https:'
  const portNumber = port === '' ? (secure ? 443 : 80) : Number(port)
  const http2 = version === '2'
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  const priorKnowledge = http2 && !secure ? { useH2c: true } : {}
  const connect = buildConnector({
    allowH2: http2,
    preferH2: http2,
    // Prior knowledge of HTTP/2 where nothing negotiates it (RFC 9113 section 3.3).
    ...priorKnowledge,
    timeout: connectTimeoutMs ?? limits.connectTimeoutMs,
    lookup: guardedLookup(egress, portNumber, limits.lookup),
    ...(secure ? tlsOptions(tls) : {}),
  })
  // An address is not a server name (RFC 6066 section 3).
  const serverName = tls?.serverName ?? (isIP(host) === 0 ? host : '')
  const pool = new Pool(origin, {
    allowH2: http2,
    ...priorKnowledge,
    ...(http2 ? {} : { pipelining: 1 }),
    connections: Number.isFinite(maxConnections) ? maxConnections : null,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: keepAliveMs ?? limits.keepAliveMs,
    // A server may shorten the keep-alive time in its responses, but not extend it.
    ...(keepAliveMs === undefined ? {} : { keepAliveMaxTimeout: keepAliveMs }),
    connect(options, callback) {
      const refused = refusedLiteral(egress, host, portNumber)
      if (refused !== undefined) {
        queueMicrotask(() => callback(refused, null))
        return
      }
      const settings = secure ? { ...options, servername: serverName } : options
      if (permits === undefined) connect(settings, callback)
      else connectWithPermit(permits, (connected) => connect(settings, connected), callback)
    },
  })
  const upstream = {
    pool,
    serverName: secure ? serverName || host : undefined,
    connects: 0,
    calls,
    used: true,
    left: end,
  }
  pool.on('connect', () => {
    upstream.connects += 1
  })
  return upstream
}

type Connected = buildConnector.Callback

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

function tlsOptions(tls: UpstreamTls | undefined) {
  if (tls === undefined) return {}
  const { ca, cert, key, insecure, names } = tls
  const checksName = insecure === undefined && names !== undefined
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
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
