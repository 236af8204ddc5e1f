/** The source of time, passed in so that limits, caches and logs can be tested without waiting. */
export type Clock = {
  /** Milliseconds since the Unix epoch; may jump when the system clock is set. */
  now(): number
  /** Milliseconds that never go backwards; the origin is arbitrary. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
