import type { LookupFunction } from 'node:net'
import { createLocalMemory, type Memory } from '../../lib/planes/memory.ts'
import { createSinglePlane, type Peers } from '../../lib/planes/peers.ts'
import { anywhere, type EgressPolicy } from '../egress/egress.ts'
import { createHttp1Client } from '../http1-client/http1-client.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import { dispatch } from './dispatch.ts'
import type { Upstream } from './http2-upstream.ts'
import { defaultUpstreamLimits } from './limits.ts'
import { createPools, type PoolLimits, type PoolSettings, type Pools } from './pools.ts'
import type { OutgoingRequest, Send } from './send.ts'
import { createSharedLimits } from './shared-limits.ts'

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
  const { connectTimeoutMs, keepAliveMs, firstByteTimeoutMs, idleTimeoutMs, calls = unmetered } = options
  const maxPools = options.maxPools ?? defaultMaxPools
  const shared = createSharedLimits(
    {
      memory: options.memory ?? createLocalMemory(),
      peers: options.peers ?? createSinglePlane(),
      // Those of each version of HTTP.
      maxPools: 2 * maxPools,
      maxQueue: options.maxQueue ?? defaultUpstreamLimits.maxUpstreamQueue,
    },
    (name) => {
      http1.closeIdle(name)
      http2.ifLoaded((pools) => pools.closeIdle(name))
    },
  )
  const settings = {
    connectTimeoutMs,
    keepAliveMs,
    maxPools,
    unusedMs: options.unusedPoolMs ?? defaultUnusedPoolMs,
    egress: options.egress ?? anywhere,
    lookup: options.lookup,
    maxConnections: options.maxConnections ?? defaultUpstreamLimits.maxUpstreamConnections,
    shared,
  }
  const limits = { firstByteTimeoutMs, idleTimeoutMs, calls }
  const http1 = createHttp1Client({ ...settings, ...limits })
  const http2 = createHttp2Pools(settings)
  return {
    send: (request) =>
      isHttp2(request)
        ? http2
            .load()
            .then((pools) => dispatch(pools.of(request.origin, request.connection), request, limits))
        : http1.send(request),
    async close() {
      await Promise.all([http1.close(), http2.ifLoaded((pools) => pools.close())])
    },
  }
}

type Http2Pools = {
  load(): Promise<Pools<Upstream>>
  /** Calls `use` unless there was no HTTP/2 call yet. */
  ifLoaded<T>(use: (pools: Pools<Upstream>) => T): Promise<T> | undefined
}

/** Pools of HTTP/2 connections. Their library is loaded with the first call: it takes 11 MiB per thread. */
function createHttp2Pools(settings: PoolSettings & PoolLimits): Http2Pools {
  let pools: Promise<Pools<Upstream>> | undefined

  async function create(): Promise<Pools<Upstream>> {
    const { createHttp2Upstream } = await import('./http2-upstream.ts')
    return createPools(settings, (origin, connection) => createHttp2Upstream(origin, connection, settings))
  }

  return {
    load() {
      pools ??= create()
      return pools
    },
    ifLoaded: (use) => pools?.then(use),
  }
}

/** Protocol upgrades exist only in HTTP/1.1 (RFC 9110 section 7.8). */
function isHttp2({ connection, upgrade }: OutgoingRequest): boolean {
  return connection?.version === '2' && upgrade === undefined
}
