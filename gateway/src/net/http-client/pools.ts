import type { LookupFunction } from 'node:net'
import type { EgressPolicy } from '../egress/egress.ts'
import type { UpstreamConnection } from './send.ts'
import type { PoolName, SharedLimits } from './shared-limits.ts'

/** Connections to one origin with equal settings. */
export type PooledOrigin = {
  /** Used since the last check for unused pools. */
  used: boolean
  isBusy(): boolean
  /** Closes unused connections, or calls `replace` where only all can be closed, after their calls. */
  closeIdle(replace: () => void): void
  /** Closes the connections; calls in flight complete. */
  close(): Promise<void>
  /** Closes the connections; calls in flight fail. */
  destroy(): Promise<void>
  /** Called after the end of a closed pool. */
  left(): void
}

export type PoolLimits = {
  /** Maximum number of pools; the least recently used is closed first. */
  readonly maxPools: number
  /** A pool is closed after one to two of these intervals without use. */
  readonly unusedMs: number
}

/** Settings of connections, and defaults for origins without their own. */
export type PoolSettings = {
  /** Longest wait for a connection, TLS included. */
  readonly connectTimeoutMs: number
  readonly keepAliveMs: number
  /** Policy of connections without a policy. */
  readonly egress: EgressPolicy
  readonly lookup: LookupFunction | undefined
  /** Connections to one origin, in all data planes together. */
  readonly maxConnections: number
  /** Limits of pools, in all data planes together. */
  readonly shared: SharedLimits
}

export type Pools<O extends PooledOrigin> = {
  of(origin: string, connection: UpstreamConnection | undefined): O
  readonly size: number
  /** Closes idle connections of a pool; calls in flight continue. */
  closeIdle(name: PoolName): void
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

/** Default connection settings. */
const plain: UpstreamConnection = { key: '' }

/** Pools by connection settings and origin. Equal settings have equal keys, so pools survive reloads. */
export function createPools<O extends PooledOrigin>(
  limits: PoolLimits,
  create: (origin: string, connection: UpstreamConnection) => O,
): Pools<O> {
  const byKey = new Map<string, Map<string, O>>()
  /** Closing pools with calls in flight. */
  const leaving = new Set<O>()
  let size = 0
  let timer: NodeJS.Timeout | undefined

  function open(origin: string, connection: UpstreamConnection): O {
    if (size >= limits.maxPools) closeUnused(Math.ceil(limits.maxPools / 10))
    const upstream = create(origin, connection)
    const siblings = byKey.get(connection.key) ?? new Map<string, O>()
    siblings.set(origin, upstream)
    byKey.set(connection.key, siblings)
    size += 1
    timer ??= setInterval(() => closeUnused(0), limits.unusedMs).unref()
    return upstream
  }

  function leave(upstream: O): void {
    const left = () => {
      leaving.delete(upstream)
      upstream.left()
    }
    leaving.add(upstream)
    upstream.close().then(left, left)
  }

  /** Closes pools unused since the last call, and at least `atLeast`. Calls in flight continue. */
  function closeUnused(atLeast: number): void {
    let closed = 0
    for (const onlyUnused of [true, false]) {
      for (const [key, siblings] of byKey) {
        for (const [origin, upstream] of siblings) {
          if (onlyUnused ? upstream.used || upstream.isBusy() : closed >= atLeast) continue
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
    closeIdle({ key, origin }) {
      const upstream = byKey.get(key)?.get(origin)
      upstream?.closeIdle(() => {
        byKey.get(key)?.delete(origin)
        size -= 1
        leave(upstream)
      })
    },
    async close() {
      clearInterval(timer)
      timer = undefined
      const kept = [...byKey.values()].flatMap((siblings) => [...siblings.values()])
      byKey.clear()
      size = 0
      await Promise.all([...kept, ...leaving].map((upstream) => upstream.destroy()))
    },
  }
}
