import type { Clock } from '../../../lib/clock.ts'

/** Rate limit of log lines from external sources. */
export type LogThrottle = {
  /** Number of suppressed lines since the last admitted one; undefined to suppress the line. */
  admit(): number | undefined
}

/** Creates a token bucket: `burst` lines, then `perSecond`. */
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
