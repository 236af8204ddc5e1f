import type { Clock } from '../../lib/clock.ts'
import { acquireLock, releaseLock } from '../../lib/planes/lock.ts'
import type { Memory } from '../../lib/planes/memory.ts'

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

// State, the same for all data planes: a lock with its description, then
//   int32[4]    consecutive calls without a response
//   float64[3]  `Clock.monotonic()` of the next permitted call
const stateBytes = 32
const failuresCell = 4
const nextProbeCell = 3

/**
 * Creates the breaker of a service. It opens after five consecutive calls of the process without a response,
 * and closes at the next response.
 */
export function createBreaker(memory: Memory, name: string, clock: Clock): Breaker {
  const region = memory.region(name, stateBytes)
  const { plane } = memory

  function isOpen(): boolean {
    return (region.int32[failuresCell] ?? 0) >= failuresToOpen
  }

  /** Permits one call of all data planes. */
  function admitProbe(now: number): boolean {
    const { int32, float64 } = region
    acquireLock(int32, 0, plane)
    const isDue = now >= (float64[nextProbeCell] ?? 0)
    if (isDue) float64[nextProbeCell] = now + openMs
    releaseLock(int32, 0)
    return isDue
  }

  return {
    admits: () => !isOpen() || admitProbe(clock.monotonic()),
    succeeded() {
      // Skip the write in the common case.
      if (region.int32[failuresCell] !== 0) Atomics.store(region.int32, failuresCell, 0)
    },
    failed() {
      const { int32, float64 } = region
      const now = clock.monotonic()
      acquireLock(int32, 0, plane)
      Atomics.add(int32, failuresCell, 1)
      if (isOpen()) float64[nextProbeCell] = now + openMs
      releaseLock(int32, 0)
    },
  }
}
