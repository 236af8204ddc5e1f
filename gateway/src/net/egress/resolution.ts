import { isIP, type LookupFunction } from 'node:net'
import type { HostPort } from '../../lib/address/host-port.ts'
import { type EgressPolicy, guardedLookup, refusedLiteral } from './egress.ts'

export type Resolved =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'failed'; readonly error: Error }

/** Repeatable name resolution for libraries that connect to addresses. Returns allowed addresses only. */
export type Resolution = {
  /** Starts a resolution; no effect while one is pending. */
  resolve(): void
  /** Drops a pending result. */
  cancel(): void
}

/** Minimum interval between results: callers resolve again after every failed connection. */
const minIntervalMs = 1_000

/**
 * Resolves a host under an egress policy. `done` receives each result, never before `resolve` has returned.
 */
export function createResolution(
  { host, port }: HostPort,
  { policy, lookup }: { policy: EgressPolicy; lookup?: LookupFunction | undefined },
  done: (resolved: Resolved) => void,
): Resolution {
  let current = 0
  let isUnderWay = false
  let nextAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined

  function start(): void {
    timer = undefined
    isUnderWay = true
    current += 1
    const own = current
    nextAt = performance.now() + minIntervalMs
    const deliver = (resolved: Resolved) => {
      if (own !== current) return
      isUnderWay = false
      done(resolved)
    }
    if (isIP(host) !== 0) {
      const error = refusedLiteral(policy, host, port)
      process.nextTick(deliver, error === undefined ? resolvedTo([host]) : { kind: 'failed', error })
      return
    }
    guardedLookup(policy, port, lookup)(host, { all: true }, (error, found) => {
      const addresses = typeof found === 'string' ? [found] : found.map(({ address }) => address)
      process.nextTick(deliver, error === null ? resolvedTo(addresses) : { kind: 'failed', error })
    })
  }

  return {
    resolve() {
      if (isUnderWay || timer !== undefined) return
      const waitMs = nextAt - performance.now()
      if (waitMs <= 0) start()
      else timer = setTimeout(start, waitMs).unref()
    },
    cancel() {
      current += 1
      isUnderWay = false
      clearTimeout(timer)
      timer = undefined
    },
  }
}

function resolvedTo(addresses: readonly string[]): Resolved {
  return { kind: 'addresses', addresses }
}
