import type { Clock } from '../clock.ts'

/** Lets traffic go on while much is computed. Called often; there is seldom something to wait for. */
export type YieldPoint = () => Promise<void> | undefined

const turnMs = 4

/** Work that takes turns with traffic: a few milliseconds of it at a time. */
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

/** Runs steps to their end in turns. */
export async function runYielding<T>(steps: Iterator<unknown, T>, yieldPoint: YieldPoint): Promise<T> {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    const pause = yieldPoint()
    if (pause) await pause
  }
}

/** Runs steps to their end at once. */
export function runToCompletion<T>(steps: Iterator<unknown, T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
