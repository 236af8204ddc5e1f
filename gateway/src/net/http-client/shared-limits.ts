import type { Memory } from '../../lib/planes/memory.ts'
import type { Peers } from '../../lib/planes/peers.ts'
import { type ConnectionPermits, createConnectionPermits } from './connection-permits.ts'
import { createSharedEntries } from './shared-entries.ts'

/** Name of a pool: equal in all data planes. */
export type PoolName = { readonly origin: string; readonly key: string }

/** Calls of all data planes to one upstream. */
export type CallCount = {
  /** Counts a call; false at the maximum. */
  begin(): boolean
  end(): void
}

/** Limits of one pool, in all data planes together. */
export type PoolShare = {
  readonly calls: CallCount
  /** Undefined without a limit beyond that of the pool. */
  readonly permits: ConnectionPermits | undefined
  /** Called after the end of the pool. */
  end(): void
}

export type SharedLimits = (name: PoolName, maxConnections: number) => PoolShare

export type SharedLimitsOptions = {
  readonly memory: Memory
  readonly peers: Peers
  /** Maximum number of pools of one data plane. */
  readonly maxPools: number
  readonly maxQueue: number
}

const service = 'idle upstream connections'
const serviceTimeoutMs = 1_000
/** Room for closing pools of one data plane. */
const maxClosing = 20_000

/** Creates the limits of pools. `closeIdle` closes the idle connections of a pool of this data plane. */
export function createSharedLimits(
  { memory, peers, maxPools, maxQueue }: SharedLimitsOptions,
  closeIdle: (name: PoolName) => void,
): SharedLimits {
  // Closing pools with calls in flight count as well.
  const maxUpstreams = (maxPools + maxClosing) * memory.planes
  const allCalls = createSharedEntries(memory, 'upstream calls', maxUpstreams)
  const allConnections = createSharedEntries(memory, 'upstream connections', maxUpstreams)
  const permitsOf = createConnectionPermits(allConnections, (upstream) => {
    const name = JSON.parse(upstream)
    closeIdle(name)
    // A data plane that does not respond has its connections until they are idle for too long.
    peers.callAll(service, name, serviceTimeoutMs).catch(() => {})
  })
  peers.serve(service, { call: (name) => closeIdle(name as PoolName) })

  return ({ origin, key }, maxConnections) => {
    const upstream = JSON.stringify({ origin, key } satisfies PoolName)
    const calls = allCalls.of(upstream)
    const maxCalls = maxConnections + maxQueue
    const hasPermits = memory.planes > 1 && Number.isFinite(maxConnections)
    const permits = hasPermits ? permitsOf(upstream, maxConnections) : undefined
    return {
      permits,
      calls: {
        begin: () => calls?.tryAdd(maxCalls) === true,
        end: () => calls?.subtract(),
      },
      end() {
        permits?.end()
        calls?.end()
      },
    }
  }
}
