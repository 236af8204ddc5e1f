import type { Clock } from '../clock.ts'

/**
 * Cooperative yielding: returns a promise to wait for when the time slice is over, else undefined. Called
 * often.
 */
export type YieldPoint = () => Promise<void> | undefined

const turnMs = 4

/** Creates a yield point with a time slice of a few milliseconds, after which other events are processed. */
export function createYieldPoint({ monotonic }: Pick<Clock, 'monotonic'>): YieldPoint {
  let startedAt = monotonic()
  return () => {
    if (monotonic() - startedAt < turnMs) return undefined
    return new Promise((resolve) => {
      setImmediate(() => {
        startedAt = monotonic()
        resolve()
      })
    })
  }
}

/** Runs steps to completion, with a yield point after each. */
export async function runYielding<T>(steps: Iterator<unknown, T>, yieldPoint: YieldPoint): Promise<T> {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    const pause = yieldPoint()
    if (pause) await pause
  }
}

/** Runs steps to completion synchronously. */
export function runToCompletion<T>(steps: Iterator<unknown, T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
