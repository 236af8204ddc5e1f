import { messageOf } from '../../../lib/thrown.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { GlobalLimitMeter, ReportOutcome } from '../../../telemetry/metrics/limits.ts'
import type { GlobalRateLimitConfig } from './config.ts'
import { createReportQueue, type ReportQueue } from './reports.ts'

/** Metrics and report queue of the limits of one scope at a service. Survives reloads. */
export type GlobalLimitState = {
  readonly meter: GlobalLimitMeter
  readonly reports: ReportQueue
  readonly counts: GlobalLimitCounts
  /** Records a call without a response. */
  recordFailure(error: unknown): void
}

/** Counters since process start. */
export type GlobalLimitCounts = {
  readonly checks: { allowed: number; refused: number; failed_open: number; failed_closed: number }
  readonly reports: Record<ReportOutcome, number>
  lastFailure: { readonly at: string; readonly reason: string } | undefined
}

/** Returns the name of the limits of a scope in metrics, logs and the admin API. */
export function labelOf({ name, domain }: GlobalRateLimitConfig, scope: string): string {
  return `${scope}: ${name ?? `global ${domain}`}`
}

/** Minimum interval between log lines about an unavailable service. */
const quietMs = 10_000

export function globalLimitState(
  config: GlobalRateLimitConfig,
  scope: string,
  context: CompileContext,
): GlobalLimitState {
  const { clock, log, grpc } = context
  const label = labelOf(config, scope)
  return context.retained(`rate-limit/global/${label}`, () => {
    const counts: GlobalLimitCounts = {
      checks: { allowed: 0, refused: 0, failed_open: 0, failed_closed: 0 },
      reports: { sent: 0, over_limit: 0, unknown: 0, failed: 0, dropped: 0 },
      lastFailure: undefined,
    }
    const meter = countingMeter(counts, context.metrics.globalLimit(label))
    let loggedAt = Number.NEGATIVE_INFINITY
    return {
      meter,
      counts,
      reports: createReportQueue({ label, meter, client: grpc, log }),
      recordFailure(error) {
        const reason = messageOf(error)
        counts.lastFailure = { at: new Date(clock.now()).toISOString(), reason }
        if (clock.monotonic() - loggedAt < quietMs) return
        loggedAt = clock.monotonic()
        log.warn({ limit: label, reason }, 'the rate limit service does not answer')
      },
    }
  })
}

function countingMeter(counts: GlobalLimitCounts, meter: GlobalLimitMeter): GlobalLimitMeter {
  return {
    checked(outcome) {
      counts.checks[outcome] += 1
      meter.checked(outcome)
    },
    reported(outcome) {
      counts.reports[outcome] += 1
      meter.reported(outcome)
    },
    pending: meter.pending,
  }
}
