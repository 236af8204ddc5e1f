import type { Clock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { createLru } from '../../lib/lru.ts'

/** A token, or another credential, with its lifetime. */
export type TimedToken<T extends object | string = string> = {
  readonly token: T
  readonly lifetimeMs: number
}

/** Tokens by key. Concurrent calls with the same key share one request. */
export type TokenCache<T extends object | string = string> = {
  /** The token of a key; requested if there is none. Rejects with the failure of the request. */
  get(key: string, request: () => Promise<TimedToken<T>>): T | Promise<T>
  /**
   * Reports that a server has refused the token of a key: the next call requests another one, at most once in
   * 30 seconds. If that fails, the refused token is used until the next attempt succeeds.
   */
  refuse(key: string): void
}

/** A limit of the gateway prevents a request: the failure is no result for the key. */
export class RequestNotSent extends GatewayError {}

/** State of one key. Times are those of `Clock.monotonic`. */
type Entry<T> = {
  token: T | undefined
  /** The token is not used from this time on. */
  staleAt: number
  /** The token is requested anew from this time on, and still used. */
  refreshAt: number
  pending: Promise<T> | undefined
  failures: number
  failure: unknown
  /** No request before this time. */
  retryAt: number
  /** Time of the last accepted `refuse`, and whether the token is still the refused one. */
  refusedAt: number
  isRefused: boolean
}

/** A token is not used shortly before its end: it must be valid at the backend. */
const marginMs = 15_000
/** A token that has ended by the clocks of others is used for a moment: each request would request one. */
const minUsableMs = 1_000
/** Servers may report any number. */
const maxLifetimeMs = 86_400_000
const refreshShare = 0.2
const firstBackoffMs = 500
const maxBackoffMs = 30_000
/** A request without permission is refused with any token. */
const refusalPauseMs = 30_000

/** Creates a cache of at most `maxEntries` tokens. Failed requests are repeated after a growing pause. */
export function createTokenCache<T extends object | string = string>(
  maxEntries: number,
  { monotonic }: Pick<Clock, 'monotonic'>,
): TokenCache<T> {
  const entries = createLru<string, Entry<T>>(maxEntries)

  function entryOf(key: string): Entry<T> {
    const known = entries.get(key)
    if (known !== undefined) return known
    const created: Entry<T> = {
      ...{ token: undefined, staleAt: 0, refreshAt: 0, pending: undefined },
      ...{ failures: 0, failure: undefined, retryAt: Number.NEGATIVE_INFINITY },
      ...{ refusedAt: Number.NEGATIVE_INFINITY, isRefused: false },
    }
    entries.set(key, created)
    return created
  }

  async function renew(entry: Entry<T>, request: () => Promise<TimedToken<T>>): Promise<T> {
    try {
      const { token, lifetimeMs: reportedMs } = await Promise.resolve().then(request)
      const now = monotonic()
      const lifetimeMs = Math.min(reportedMs, maxLifetimeMs)
      const usableMs = Math.max(lifetimeMs - Math.min(marginMs, lifetimeMs / 2), minUsableMs)
      Object.assign(entry, { token, failures: 0, failure: undefined, staleAt: now + usableMs })
      entry.isRefused = false
      entry.refreshAt = entry.staleAt - usableMs * refreshShare
      return token
    } catch (error) {
      if (error instanceof RequestNotSent) throw error
      entry.failures += 1
      entry.failure = error
      entry.retryAt = monotonic() + Math.min(firstBackoffMs * 2 ** (entry.failures - 1), maxBackoffMs)
      throw error
    } finally {
      entry.pending = undefined
    }
  }

  return {
    get(key, request) {
      const entry = entryOf(key)
      const now = monotonic()
      const isCurrent = now < entry.staleAt && (!entry.isRefused || entry.failures > 0)
      const usable = isCurrent ? entry.token : undefined
      if (usable !== undefined && now < entry.refreshAt) return usable
      if (entry.pending === undefined && now >= entry.retryAt) {
        entry.pending = renew(entry, request)
        // A failed refresh is retried; without a usable token the caller receives the failure.
        entry.pending.catch(() => {})
      }
      return usable ?? entry.pending ?? Promise.reject(entry.failure)
    },
    refuse(key) {
      const entry = entries.get(key)
      const now = monotonic()
      if (entry?.token === undefined || now < entry.refusedAt + refusalPauseMs) return
      Object.assign(entry, { isRefused: true, refusedAt: now, refreshAt: now })
    },
  }
}
