import type { CompileContext } from '../../../../pipeline/compile-context.ts'

/** Calls whose first byte is their first content, and calls whose first byte follows the last token. */
type CallKind = 'streamed' | 'whole'

/** Recent time to the first byte of a target, in milliseconds; the same for all data planes. */
export type Latency = {
  /** Moving average, decayed by its age; 0 without an observation. */
  estimate(call: CallKind): number
  record(call: CallKind, milliseconds: number): void
}

// Numbers of the region, of which each kind of call has a pair: the average, and the time of its last
// observation. They have no lock: a lost observation is one of many.
const averageCells: Readonly<Record<CallKind, number>> = { streamed: 2, whole: 4 }
const stateBytes = 48

/** Weight of an observation. */
const weight = 0.3
/** Without decay, a target that was slow once would never be observed again. */
const halfLifeMs = 30_000

/** Creates the observed times of a target. `name` is their key across reloads. */
export function retainLatency(name: string, { memory, retained, clock }: CompileContext): Latency {
  const state = retained(name, () => ({ region: memory.region(name, stateBytes) }))
  return {
    estimate(call) {
      const { float64 } = state.region
      const cell = averageCells[call]
      const age = clock.monotonic() - (float64[cell + 1] ?? 0)
      return (float64[cell] ?? 0) * 2 ** (-Math.max(0, age) / halfLifeMs)
    },
    record(call, milliseconds) {
      const { float64 } = state.region
      const cell = averageCells[call]
      const average = float64[cell] ?? 0
      float64[cell] = average === 0 ? milliseconds : average + weight * (milliseconds - average)
      float64[cell + 1] = clock.monotonic()
    },
  }
}
