/** Source of time, injected so that limits, caches and logs can be tested without waiting. */
export type Clock = {
  /** Milliseconds since the Unix epoch; may jump when the system clock is set. */
  now(): number
  /** Monotonic milliseconds with an arbitrary origin, the same in all threads of the process. */
  monotonic(): number
}

/**
 * `performance.now()` starts at 0 in each thread; `process.hrtime()` has one origin, but allocates. The
 * difference is measured once per thread.
 */
const originMs = measureOrigin()

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => originMs + performance.now(),
}

/** `process.hrtime()` at the origin of `performance.now()`, from the attempt with the least delay. */
function measureOrigin(): number {
  let leastDelayMs = Number.POSITIVE_INFINITY
  let origin = 0
  for (let attempt = 0; attempt < 8; attempt++) {
    const before = performance.now()
    const [seconds, nanoseconds] = process.hrtime()
    const after = performance.now()
    if (after - before >= leastDelayMs) continue
    leastDelayMs = after - before
    origin = seconds * 1e3 + nanoseconds / 1e6 - (before + after) / 2
  }
  return origin
}
