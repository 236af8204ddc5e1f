import type { LookupFunction } from 'node:net'
import { createLocalMemory, type Memory } from '../../lib/planes/memory.ts'
import { createSinglePlane, type Peers } from '../../lib/planes/peers.ts'
import { anywhere, type EgressPolicy } from '../egress/egress.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import { dispatch } from './dispatch.ts'
import { defaultUpstreamLimits } from './limits.ts'
import { createPools } from './pools.ts'
import type { Send } from './send.ts'

export type HttpClientOptions = {
  /** Longest wait for a connection, TLS included. */
  connectTimeoutMs: number
  /** How long an unused connection stays open. */
  keepAliveMs: number
  /** Default limits of a request. */
  firstByteTimeoutMs: number
  idleTimeoutMs: number
  /** Maximum number of pools. Default 10,000. */
  maxPools?: number
  /**
   * Maximum connections to one origin, and calls in its queue, in all data planes together. Default:
   * `config.limits`.
   */
  maxConnections?: number
  maxQueue?: number
  /** Meter of active calls. */
  calls?: AdmissionMeter
  /** Idle time before the pool of an origin is closed. Default 10 minutes. */
  unusedPoolMs?: number
  /** Policy of connections without a policy. Default: no restrictions. */
  egress?: EgressPolicy
  /** Name resolution. Default: the resolver of the system. */
  lookup?: LookupFunction
  /** The data planes. Default: a single one. */
  memory?: Memory
  peers?: Peers
}

/** HTTP client of the gateway. Pools connections by origin and settings, across reloads. */
export type HttpClient = {
  send: Send
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

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
    memory: options.memory ?? createLocalMemory(),
    peers: options.peers ?? createSinglePlane(),
  })
  const { firstByteTimeoutMs, idleTimeoutMs, calls = unmetered } = options
  const limits = { firstByteTimeoutMs, idleTimeoutMs, calls }
  return {
    send: (request) => dispatch(pools.of(request.origin, connectionOf(request)), request, limits),
    close: () => pools.close(),
  }
}

/** Protocol upgrades exist only in HTTP/1.1 (RFC 9110 section 7.8). */
function connectionOf({ connection, upgrade }: Parameters<Send>[0]) {
  if (upgrade === undefined || connection?.version !== '2') return connection
  return { ...connection, key: `${connection.key} upgrade`, version: '1.1' as const }
}
