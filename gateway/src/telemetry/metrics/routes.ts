import { durationBuckets } from './buckets.ts'
import {
  type HistogramSlot,
  type MetricRegistry,
  type ObservedTrace,
  observe,
  type ValueSlot,
} from './families.ts'
import { createMeters } from './meters.ts'

/** Meter of one route, looked up once when it is compiled. */
export type RouteMeter = {
  /** Milliseconds since the request head; `firstByteMs` is undefined if no byte was sent. */
  done(
    status: number,
    durationMs: number,
    firstByteMs: number | undefined,
    /** Values of the labels of the configuration; undefined without any. */
    labels?: readonly string[] | undefined,
    /** Trace of the request, for exemplars; undefined if tracing is off. */
    trace?: ObservedTrace | undefined,
  ): void
}

export function createRouteMeters(registry: MetricRegistry): (route: string) => RouteMeter {
  const requests = registry.counter({
    name: 'tollgate_requests_total',
    help: 'Completed requests.',
    labels: ['route', 'status'],
    extensible: true,
  })
  const durations = registry.histogram(
    {
      name: 'tollgate_request_duration_seconds',
      help: 'Time from the head of a request to the last byte of its response.',
      labels: ['route'],
      extensible: true,
    },
    durationBuckets,
  )
  const firstBytes = registry.histogram(
    {
      name: 'tollgate_time_to_first_byte_seconds',
      help: 'Time from the head of a request to the first byte of its response body.',
      labels: ['route'],
      extensible: true,
    },
    durationBuckets,
  )
  return createMeters((route) => {
    /** Series by labels of the configuration; the empty text stands for none. */
    const byLabels = new Map<string, { readonly series: RouteSeries; readonly labels: readonly string[] }>()
    const create = (labels: readonly string[]): RouteSeries => ({
      byStatus: new Map(),
      request: (status) => requests.slot(route, status, ...labels),
      // Created by the first request: most of 10,000 routes may be unused, and a scrape contains every
      // series.
      duration: () => durations.slot(route, ...labels),
      firstByte: () => firstBytes.slot(route, ...labels),
      durationSlot: undefined,
      firstByteSlot: undefined,
    })
    const plain = create([])
    byLabels.set('', { series: plain, labels: [] })
    const seriesOf = (labels: readonly string[]) => {
      const key = labels.join('\u0000')
      const known = byLabels.get(key)
      if (known !== undefined) return known.series
      const series = create(labels)
      byLabels.set(key, { series, labels })
      return series
    }
    return {
      meter: {
        done(status, durationMs, firstByteMs, labels, trace) {
          const series = labels === undefined ? plain : seriesOf(labels)
          countRequest(series, status)
          series.durationSlot ??= series.duration()
          observe(series.durationSlot, durationBuckets, durationMs / 1000, trace)
          if (firstByteMs === undefined) return
          series.firstByteSlot ??= series.firstByte()
          observe(series.firstByteSlot, durationBuckets, firstByteMs / 1000, trace)
        },
      },
      drop() {
        for (const { series, labels } of byLabels.values()) {
          for (const status of series.byStatus.keys()) requests.drop(route, statusLabel(status), ...labels)
          durations.drop(route, ...labels)
          firstBytes.drop(route, ...labels)
        }
      },
    }
  })
}

/** Series of a route with the same labels of the configuration. */
type RouteSeries = {
  readonly byStatus: Map<number, ValueSlot>
  request(status: string): ValueSlot
  duration(): HistogramSlot
  firstByte(): HistogramSlot
  durationSlot: HistogramSlot | undefined
  firstByteSlot: HistogramSlot | undefined
}

function countRequest(series: RouteSeries, status: number): void {
  let counter = series.byStatus.get(status)
  if (!counter) {
    counter = series.request(statusLabel(status))
    series.byStatus.set(status, counter)
  }
  counter.value += 1
}

/** Webhooks and upstreams may send any number; the number of series is limited to statuses of HTTP. */
function statusLabel(status: number): string {
  return status >= 100 && status <= 599 ? String(status) : 'other'
}
