/** Delays between attempts to connect, in milliseconds. */
export type BackOff = {
  /** Delay of the next attempt: exponential with full jitter. */
  next(): number
  /** Called after a success. */
  reset(): void
}

export type BackOffOptions = {
  /** Upper bound of the first delay. */
  readonly firstMs: number
  readonly maxMs: number
  /** Random number between 0 and 1. */
  random(): number
}

export function createBackOff({ firstMs, maxMs, random }: BackOffOptions): BackOff {
  let boundMs = firstMs
  return {
    next() {
      const delay = random() * boundMs
      boundMs = Math.min(boundMs * 2, maxMs)
      return delay
    },
    reset() {
      boundMs = firstMs
    },
  }
}
