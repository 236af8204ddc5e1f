import type { Clock } from '../../../lib/clock.ts'
import type { Memory } from '../../../lib/planes/memory.ts'

/** Start of the gateway, in seconds since the Unix epoch. */
export type StartTime = { readonly at: number }

/** Index of the time in its region, which has no lock. */
const timeCell = 4

/** Creates the start time: that of the data plane which first publishes it, the same for all of them. */
export function createStartTime({ clock, memory }: { clock: Clock; memory: Memory }): StartTime {
  const own = Math.floor(clock.now() / 1000)
  const region = memory.region('llm/started', 4 * (timeCell + 2))
  return {
    get at() {
      // Unsigned, beyond the year 2038.
      return Atomics.compareExchange(region.int32, timeCell, 0, own) >>> 0 || own
    },
  }
}
