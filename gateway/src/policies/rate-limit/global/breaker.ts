import type { Clock } from '../../../lib/clock.ts'

/**
 * Circuit breaker: rejects calls to an unresponsive service, so that requests do not each wait for the
 * timeout.
 */
export type Breaker = {
  /** Whether a call is permitted. While open, one probe per second is permitted. */
  admits(): boolean
  succeeded(): void
  /** Records a call without a response: UNAVAILABLE or DEADLINE_EXCEEDED. */
  failed(): void
}

const failuresToOpen = 5
const openMs = 1_000

/** Opens after five consecutive calls without a response and closes at the next response. */
export function createBreaker(clock: Clock): Breaker {
  let failures = 0
  let nextProbeAt = 0
  return {
    admits() {
      if (failures < failuresToOpen) return true
      const now = clock.monotonic()
      if (now < nextProbeAt) return false
      nextProbeAt = now + openMs
      return true
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures += 1
      if (failures >= failuresToOpen) nextProbeAt = clock.monotonic() + openMs
    },
  }
}
