import type { MetricRegistry, ValueSlot } from './families.ts'
import { createMeters } from './meters.ts'

/** Meter of one destination with health. */
export type DestinationMeter = {
  /** Counts an ejection after failures. */
  ejected(): void
}

export function createDestinationMeters(registry: MetricRegistry): (place: string) => DestinationMeter {
  const ejections = registry.counter({
    name: 'tollgate_destination_ejections_total',
    help: 'Ejections of destinations after consecutive failures, by place in the configuration.',
    labels: ['destination'],
  })
  return createMeters((place) => {
    // Created by the first ejection: most destinations have none.
    let slot: ValueSlot | undefined
    return {
      meter: {
        ejected() {
          slot ??= ejections.slot(place)
          slot.value += 1
        },
      },
      drop: () => ejections.drop(place),
    }
  })
}
