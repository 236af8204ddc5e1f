import type { Clock } from '../../../lib/clock.ts'

/** Stops calls to a service that does not answer, so that requests do not wait for it one by one. */
export type Breaker = {
  /** Whether a call may be made now. While open, one call in a second may, to find the service again. */
  admits(): boolean
  succeeded(): void
  /** Records a call without an answer: unavailable, or over its deadline. */
  failed(): void
}

const failuresToOpen = 5
const openMs = 1_000

/** Opens after five calls in a row without an answer and closes with the next answer. */
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
