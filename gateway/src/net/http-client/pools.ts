import { isIP, type LookupFunction } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { buildConnector, Pool } from 'undici'
import { type EgressPolicy, guardedLookup, refusedLiteral } from '../egress/egress.ts'
import { checkCertificateNames } from '../tls/certificate-names.ts'
import type { UpstreamConnection, UpstreamTls } from './send.ts'

/** The connections to one origin with the same settings. */
export type Upstream = {
  readonly pool: Pool
  /** What every request must name as its TLS server: the library would take the `host` header's, and reconnect for each. */
  readonly serverName: string | undefined
  /** Connections made so far: tells whether a request can have met a connection that was open before it. */
  connects: number
  /** Calls under way, those that wait for a connection included. */
  calls: number
  /** Most calls at once; more are refused. */
  readonly maxCalls: number
  /** Used since the last look for unused ones. */
  used: boolean
}

export type PoolLimits = {
  /** Longest wait for a connection, TLS included, where the connection says nothing. */
  readonly connectTimeoutMs: number
  readonly keepAliveMs: number
  /** Pools kept at most; the one unused for longest goes first. */
  readonly maxPools: number
  /** A pool unused for this long, at most twice, is closed. */
  readonly unusedMs: number
  /** Policy of connections that have none of their own. */
  readonly egress: EgressPolicy
  readonly lookup: LookupFunction | undefined
  /** Connections to one origin where its settings do not say, and calls that may wait for one. */
  readonly maxConnections: number
  readonly maxQueue: number
}

export type Pools = {
  of(origin: string, connection: UpstreamConnection | undefined): Upstream
  readonly size: number
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

/** Size of an answer's head, which holds more than a request's: a whole shop in cookies, policies for pages. */
const maxHeaderBytes = 64 * 1024

/** Settings of calls that say nothing about their connection. */
const plain: UpstreamConnection = { key: '' }

/** Pools by the settings of their connections and by origin. They survive reloads, because equal settings have equal keys. */
export function createPools(limits: PoolLimits): Pools {
  const byKey = new Map<string, Map<string, Upstream>>()
  /** Given up, with calls still in flight. */
  const leaving = new Set<Pool>()
  let size = 0
  let timer: NodeJS.Timeout | undefined

  function open(origin: string, connection: UpstreamConnection): Upstream {
    if (size >= limits.maxPools) closeUnused(Math.ceil(limits.maxPools / 10))
    const upstream = createUpstream(origin, connection, limits)
    const siblings = byKey.get(connection.key) ?? new Map<string, Upstream>()
    siblings.set(origin, upstream)
    byKey.set(connection.key, siblings)
    size += 1
    timer ??= setInterval(() => closeUnused(0), limits.unusedMs).unref()
    return upstream
  }

  function leave(pool: Pool): void {
    const left = () => void leaving.delete(pool)
    leaving.add(pool)
    pool.close().then(left, left)
  }

  /** Closes what was not used since the last call, and `atLeast` so many. Calls in flight end on their own terms. */
  function closeUnused(atLeast: number): void {
    let closed = 0
    for (const onlyUnused of [true, false]) {
      for (const [key, siblings] of byKey) {
        for (const [origin, upstream] of siblings) {
          if (onlyUnused ? upstream.used || isBusy(upstream.pool) : closed >= atLeast) continue
          siblings.delete(origin)
          size -= 1
          closed += 1
          leave(upstream.pool)
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

function createUpstream(origin: string, connection: UpstreamConnection, limits: PoolLimits): Upstream {
  const { tls, version, connectTimeoutMs, keepAliveMs, egress = limits.egress } = connection
  const maxConnections = connection.maxConnections ?? limits.maxConnections
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
    // Servers may ask for less in their answers, not for more than was asked for here.
    ...(keepAliveMs === undefined ? {} : { keepAliveMaxTimeout: keepAliveMs }),
    connect(options, callback) {
      const refused = refusedLiteral(egress, host, portNumber)
      if (refused !== undefined) queueMicrotask(() => callback(refused, null))
      else connect(secure ? { ...options, servername: serverName } : options, callback)
    },
  })
  const upstream = {
    pool,
    serverName: secure ? serverName || host : undefined,
    connects: 0,
    calls: 0,
    maxCalls: maxConnections + limits.maxQueue,
    used: true,
  }
  pool.on('connect', () => {
    upstream.connects += 1
  })
  return upstream
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
