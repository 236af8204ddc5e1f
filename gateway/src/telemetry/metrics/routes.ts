import { durationBuckets } from './buckets.ts'
import { type HistogramSlot, type MetricRegistry, observe, type ValueSlot } from './families.ts'
import { createMeters } from './meters.ts'

/** Meter of one route, looked up once when it is compiled. */
export type RouteMeter = {
  /** Milliseconds since the request head; `firstByteMs` is undefined if no byte was sent. */
  done(status: number, durationMs: number, firstByteMs: number | undefined): void
}

export function createRouteMeters(registry: MetricRegistry): (route: string) => RouteMeter {
  const requests = registry.counter({
    name: 'tollgate_requests_total',
    help: 'Completed requests.',
    labels: ['route', 'status'],
  })
  const durations = registry.histogram(
    {
      name: 'tollgate_request_duration_seconds',
      help: 'Time from the head of a request to the last byte of its response.',
      labels: ['route'],
    },
    durationBuckets,
  )
  const firstBytes = registry.histogram(
    {
      name: 'tollgate_time_to_first_byte_seconds',
      help: 'Time from the head of a request to the first byte of its response body.',
      labels: ['route'],
    },
    durationBuckets,
  )
  return createMeters((route) => {
    const byStatus = new Map<number, ValueSlot>()
    let duration: HistogramSlot | undefined
    let firstByte: HistogramSlot | undefined
    return {
      meter: {
        done(status, durationMs, firstByteMs) {
          let counter = byStatus.get(status)
          if (!counter) {
            counter = requests.slot(route, statusLabel(status))
            byStatus.set(status, counter)
          }
          counter.value += 1
          // Created by the first request: most of 10,000 routes may be unused, and a scrape contains every
          // series.
          duration ??= durations.slot(route)
          observe(duration, durationBuckets, durationMs / 1000)
          if (firstByteMs === undefined) return
          firstByte ??= firstBytes.slot(route)
          observe(firstByte, durationBuckets, firstByteMs / 1000)
        },
      },
      drop() {
        for (const status of byStatus.keys()) requests.drop(route, statusLabel(status))
        durations.drop(route)
        firstBytes.drop(route)
      },
    }
  })
}

/** Webhooks and upstreams may send any number; the number of series is limited to statuses of HTTP. */
function statusLabel(status: number): string {
  return status >= 100 && status <= 599 ? String(status) : 'other'
}
