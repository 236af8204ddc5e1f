import { expect } from 'vitest'

/** Other programs and the collection of garbage lengthen single measurements, seldom five in a row. */
const maxAttempts = 5

/**
 * Asserts that one of up to five measurements is below the bound. Performance is measured in `gateway/bench`;
 * this helper is for defects that show only as time, for example quadratic work. The bound is at least four
 * times the figure of a busy machine, and the defect exceeds it many times. A figure that no noise explains
 * ends the attempts.
 */
export async function expectBelow(bound: number, measure: () => number | Promise<number>): Promise<void> {
  let least = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < maxAttempts && least >= bound; attempt += 1) {
    const figure = await measure()
    least = Math.min(least, figure)
    if (figure > 10 * bound) break
  }
  expect(least).toBeLessThan(bound)
}

/**
 * CPU time of this thread during the work, in ms: it contains no waiting for a processor, in contrast to wall
 * time.
 */
export function cpuMsOf(work: () => void): number
export function cpuMsOf(work: () => Promise<unknown>): Promise<number>
export function cpuMsOf(work: () => unknown): number | Promise<number> {
  const before = process.threadCpuUsage()
  const elapsedMs = () => {
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  }
  const result = work()
  return result instanceof Promise ? result.then(elapsedMs) : elapsedMs()
}
