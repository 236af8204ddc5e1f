import type { CompileContext } from '../../../pipeline/compile-context.ts'

/**
 * The end of a target's cooldown after a failure, on the monotonic clock; the same for all data planes, and
 * retained across reloads. Failover tries targets in cooldown last. The eviction of destinations
 * (`upstream/health.ts`) excludes them instead.
 */
export type Cooldown = { until: number }

/** Index of the number in `float64`; the description of locks is before it. */
const untilCell = 2

export function retainCooldown(name: string, { memory, retained }: CompileContext): Cooldown {
  return retained(name, () => {
    const region = memory.region(name, 24)
    return {
      get until() {
        return region.float64[untilCell] ?? 0
      },
      set until(until) {
        // A write would take the memory from the caches of all other data planes.
        if (region.float64[untilCell] !== until) region.float64[untilCell] = until
      },
    }
  })
}
