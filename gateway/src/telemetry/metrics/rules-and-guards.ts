import { durationBuckets } from './buckets.ts'
import { type MetricRegistry, observe, type ValueSlot } from './families.ts'

/** Meter of one authorization rule. */
export type RuleMeter = { refused(): void }

/** Outcome of a content check; label values of the guard metrics. */
export type GuardOutcome =
  | 'allow'
  | 'mask'
  | 'reject'
  | 'audit_mask'
  | 'audit_reject'
  | 'fail_open'
  | 'fail_closed'
  | 'cancelled'
  | 'skipped'

/** Meter of one guard. */
export type GuardMeter = {
  checked(phase: 'request' | 'response', outcome: GuardOutcome, durationMs: number): void
}

export function createRuleMeters(registry: MetricRegistry): (rule: string) => RuleMeter {
  const refusals = registry.counter({
    name: 'tollgate_authorization_refusals_total',
    help: 'Requests and connections rejected by an authorization rule.',
    labels: ['rule'],
  })
  return (rule) => {
    const refused = refusals.slot(rule)
    return {
      refused() {
        refused.value += 1
      },
    }
  }
}

export function createGuardMeters(registry: MetricRegistry): (guard: string) => GuardMeter {
  const checks = registry.counter({
    name: 'tollgate_guardrail_checks_total',
    help: 'Content checks of guardrails by outcome.',
    labels: ['guard', 'phase', 'outcome'],
  })
  const durations = registry.histogram(
    {
      name: 'tollgate_guardrail_duration_seconds',
      help: 'Duration of content checks of guardrails.',
      labels: ['guard'],
    },
    durationBuckets,
  )
  return (guard) => {
    const duration = durations.slot(guard)
    const counters = new Map<string, ValueSlot>()
    return {
      checked(phase, outcome, durationMs) {
        const key = phase + outcome
        let counter = counters.get(key)
        if (counter === undefined) {
          counter = checks.slot(guard, phase, outcome)
          counters.set(key, counter)
        }
        counter.value += 1
        if (outcome !== 'skipped') observe(duration, durationBuckets, durationMs / 1000)
      },
    }
  }
}

/** Meter of the transformations of one scope. */
export type TransformationMeter = {
  /** Counts expressions without a usable value. */
  failed(phase: 'request' | 'response', count: number): void
}

export function createTransformationMeters(registry: MetricRegistry): (scope: string) => TransformationMeter {
  const failures = registry.counter({
    name: 'tollgate_transformation_failures_total',
    help: 'Expressions of transformations without a usable value: failed, or invalid as a header.',
    labels: ['scope', 'phase'],
  })
  return (scope) => {
    const slots = { request: failures.slot(scope, 'request'), response: failures.slot(scope, 'response') }
    return {
      failed(phase, count) {
        if (count > 0) slots[phase].value += count
      },
    }
  }
}
