import type { ApiError } from './requests/api-error.ts'

export type BackOffLimits = { readonly minMs: number; readonly maxMs: number }

/** Delays between attempts: exponential, with jitter. */
export type BackOff = {
  /** Delay before the next attempt; at least the delay that the server requests, up to the limit. */
  next(error?: ApiError): number
  reset(): void
}

/** A server that requests longer delays is asked earlier. */
const maxRequestedMs = 60_000
const growth = 2

/** Creates a back-off. `random` is uniform in [0, 1). */
export function createBackOff({ minMs, maxMs }: BackOffLimits, random: () => number): BackOff {
  let current = minMs
  return {
    next(error) {
      const delay = current * (0.5 + random() / 2)
      current = Math.min(maxMs, current * growth)
      const requested = Math.min(error?.retryAfterMs ?? 0, maxRequestedMs)
      // All clients receive the same request: jitter goes on top.
      return requested > 0 ? requested + delay : delay
    },
    reset() {
      current = minMs
    },
  }
}
