import type { Clock } from '../../../lib/clock.ts'

/** Holds what others make the gateway log to a rate. */
export type LogThrottle = {
  /** Undefined when the line has to be left out, else how many were left out since the last one that was not. */
  admit(): number | undefined
}

/** Lets `burst` lines through at once and then `perSecond`. */
export function createLogThrottle(clock: Clock, burst: number, perSecond: number): LogThrottle {
  let tokens = burst
  let filledAt = clock.monotonic()
  let suppressed = 0
  return {
    admit() {
      const now = clock.monotonic()
      tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * perSecond)
      filledAt = now
      if (tokens < 1) {
        suppressed += 1
        return undefined
      }
      tokens -= 1
      const missed = suppressed
      suppressed = 0
      return missed
    },
  }
}
