/** Source of time, injected so that limits, caches and logs can be tested without waiting. */
export type Clock = {
  /** Milliseconds since the Unix epoch; may jump when the system clock is set. */
  now(): number
  /** Monotonic milliseconds with an arbitrary origin. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
