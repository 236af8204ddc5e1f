import type { MetricRegistry } from '../metrics/families.ts'

/** Meter of the export of one signal to a collector. */
export type ExportMeter = {
  sent(items: number): void
  dropped(reason: 'queue_full' | 'rejected' | 'refused' | 'unavailable', items: number): void
  retried(): void
}

/** Counts evaluations of an expression of telemetry that failed; `place` is its configuration path. */
export type ExpressionMeter = { failed(): void }

export type TelemetryMeters = {
  exports(signal: string): ExportMeter
  expression(place: string): ExpressionMeter
}

export function createTelemetryMeters(registry: MetricRegistry): TelemetryMeters {
  const sent = registry.counter({
    name: 'tollgate_telemetry_exported_total',
    help: 'Spans, log records and metrics that a collector has accepted.',
    labels: ['signal'],
  })
  const dropped = registry.counter({
    name: 'tollgate_telemetry_dropped_total',
    help: 'Spans, log records and metrics that were not exported, by reason.',
    labels: ['signal', 'reason'],
  })
  const retried = registry.counter({
    name: 'tollgate_telemetry_retries_total',
    help: 'Export requests that were repeated.',
    labels: ['signal'],
  })
  const failed = registry.counter({
    name: 'tollgate_telemetry_expression_failures_total',
    help: 'Evaluations of CEL expressions of telemetry that failed, by place in the configuration.',
    labels: ['expression'],
  })
  return {
    exports: (signal) => ({
      sent(items) {
        sent.slot(signal).value += Math.max(0, items)
      },
      dropped(reason, items) {
        dropped.slot(signal, reason).value += items
      },
      retried() {
        retried.slot(signal).value += 1
      },
    }),
    expression: (place) => ({
      failed() {
        failed.slot(place).value += 1
      },
    }),
  }
}
