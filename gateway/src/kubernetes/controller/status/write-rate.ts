import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../../lib/clock.ts'

/** Limit on writes to the API server: a token bucket in which writers wait in order. */
export type WriteRate = {
  /** Resolves when a write is permitted. Rejects after the signal. */
  acquire(signal: AbortSignal): Promise<void>
}

export function createWriteRate(
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
  { monotonic }: Pick<Clock, 'monotonic'>,
): WriteRate {
  const intervalMs = 1_000 / perSecond
  /** Time at which the bucket is full again. */
  let fullAt = monotonic()
  return {
    async acquire(signal) {
      signal.throwIfAborted()
      const now = monotonic()
      fullAt = Math.max(fullAt, now) + intervalMs
      const waitMs = fullAt - now - burst * intervalMs
      if (waitMs > 0) await delay(waitMs, undefined, { signal })
    },
  }
}
