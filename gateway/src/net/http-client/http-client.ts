import type { LookupFunction } from 'node:net'
import { anywhere, type EgressPolicy } from '../egress/egress.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import { dispatch } from './dispatch.ts'
import { createPools } from './pools.ts'
import type { Send } from './send.ts'

export type HttpClientOptions = {
  /** Longest wait for a connection, TLS included. */
  connectTimeoutMs: number
  /** How long an unused connection stays open. */
  keepAliveMs: number
  /** Defaults of the limits a request may set itself. */
  firstByteTimeoutMs: number
  idleTimeoutMs: number
  /** Pools kept at most. 10,000 unless said. */
  maxPools?: number
  /** Connections to one origin at most, and calls that may wait for one. As `config.limits` has them unless said. */
  maxConnections?: number
  maxQueue?: number
  /** Instruments of calls under way. */
  calls?: AdmissionMeter
  /** How long the pool of an origin is kept without use. 10 minutes unless said. */
  unusedPoolMs?: number
  /** Addresses that connections without a policy of their own may lead to. All unless set. */
  egress?: EgressPolicy
  /** Resolves names. The system's resolver unless set. */
  lookup?: LookupFunction
}

/** The side of the gateway that calls others. Connections are pooled by origin and settings, and survive reloads. */
export type HttpClient = {
  send: Send
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

/** Bounds on what calls to one origin occupy. */
export const defaultUpstreamLimits = { maxUpstreamConnections: 2_000, maxUpstreamQueue: 500 }

const unmetered: AdmissionMeter = { changed() {}, refused() {} }

const defaultMaxPools = 10_000
const defaultUnusedPoolMs = 600_000

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { connectTimeoutMs, keepAliveMs } = options
  const pools = createPools({
    connectTimeoutMs,
    keepAliveMs,
    maxPools: options.maxPools ?? defaultMaxPools,
    unusedMs: options.unusedPoolMs ?? defaultUnusedPoolMs,
    egress: options.egress ?? anywhere,
    lookup: options.lookup,
    maxConnections: options.maxConnections ?? defaultUpstreamLimits.maxUpstreamConnections,
    maxQueue: options.maxQueue ?? defaultUpstreamLimits.maxUpstreamQueue,
  })
  const { firstByteTimeoutMs, idleTimeoutMs, calls = unmetered } = options
  const limits = { firstByteTimeoutMs, idleTimeoutMs, calls }
  return {
    send: (request) => dispatch(pools.of(request.origin, connectionOf(request)), request, limits),
    close: () => pools.close(),
  }
}

/** Changing the protocol is a matter of HTTP/1.1 (RFC 9110 section 7.8). */
function connectionOf({ connection, upgrade }: Parameters<Send>[0]) {
  if (upgrade === undefined || connection?.version !== '2') return connection
  return { ...connection, key: `${connection.key} upgrade`, version: '1.1' as const }
}
