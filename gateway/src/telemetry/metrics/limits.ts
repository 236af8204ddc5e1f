import type { AdmissionMeter } from '../../net/listener/admission.ts'
import type { MetricRegistry } from './families.ts'

/** Meter of one rate limit. */
export type LimitMeter = { allowed(): void; refused(): void }

/**
 * Result of a token report to a rate limit service: accepted, accepted above the limit, no response before
 * the deadline (it may have been counted), rejected or unreachable, or dropped from a full queue.
 */
export type ReportOutcome = 'sent' | 'over_limit' | 'unknown' | 'failed' | 'dropped'

/** Meter of one limit counted by a rate limit service. */
export type GlobalLimitMeter = {
  checked(outcome: 'allowed' | 'refused' | 'failed_open' | 'failed_closed'): void
  reported(outcome: ReportOutcome): void
  /** Changes the number of pending reports. */
  pending(change: 1 | -1): void
}

export function createLimitMeters(registry: MetricRegistry): (limit: string) => LimitMeter {
  const decisions = registry.counter({
    name: 'tollgate_limit_decisions_total',
    help: 'Decisions of rate limits.',
    labels: ['limit', 'decision'],
  })
  return (limit) => {
    const allowed = decisions.slot(limit, 'allowed')
    const refused = decisions.slot(limit, 'refused')
    return {
      allowed() {
        allowed.value += 1
      },
      refused() {
        refused.value += 1
      },
    }
  }
}

/** Creates the gauge of the database of shared limits. The series exists after its first use. */
export function createSharedLimitGauge(registry: MetricRegistry): (isConnected: boolean) => void {
  const connected = registry.gauge({
    name: 'tollgate_limit_database_connected',
    help: '1 if limits with scope shared are counted with other processes, 0 while each process counts alone. Absent without such limits.',
    labels: [],
  })
  return (isConnected) => {
    connected.slot().value = isConnected ? 1 : 0
  }
}

export function createGlobalLimitMeters(registry: MetricRegistry): (limit: string) => GlobalLimitMeter {
  const checks = registry.counter({
    name: 'tollgate_global_limit_checks_total',
    help: 'Requests to rate limit services by outcome.',
    labels: ['limit', 'outcome'],
  })
  const reports = registry.counter({
    name: 'tollgate_global_limit_reports_total',
    help: 'Token reports to rate limit services by outcome.',
    labels: ['limit', 'outcome'],
  })
  const pendingReports = registry.gauge({
    name: 'tollgate_global_limit_reports_pending',
    help: 'Pending token reports to rate limit services.',
    labels: ['limit'],
  })
  return (limit) => {
    const pending = pendingReports.slot(limit)
    return {
      checked(outcome) {
        checks.slot(limit, outcome).value += 1
      },
      reported(outcome) {
        reports.slot(limit, outcome).value += 1
      },
      pending(change) {
        pending.value += change
      },
    }
  }
}

/** Meters of the limits on client resources. */
export function createAdmissionMeters(registry: MetricRegistry): AdmissionMeters {
  const amounts = registry.gauge({
    name: 'tollgate_admission_in_use',
    help: 'Amount in use of each limit of config.limits.',
    labels: ['resource'],
  })
  const refusals = registry.counter({
    name: 'tollgate_admission_refusals_total',
    help: 'Connections, requests and calls rejected by a limit of config.limits.',
    labels: ['resource'],
  })
  return {
    inUse: (resource) => amounts.slot(resource).value,
    meterOf(resource) {
      const inUse = amounts.slot(resource)
      const refused = refusals.slot(resource)
      return {
        changed(by) {
          inUse.value += by
        },
        refused() {
          refused.value += 1
        },
      }
    },
  }
}

export type AdmissionMeters = {
  meterOf(resource: string): AdmissionMeter
  /** Amount in use of a resource. */
  inUse(resource: string): number
}

/**
 * Decision of a budget about a request: `allowed`, `refused` above the limit, `audited` above the limit of a
 * budget that only reports, `warned` above its warning level, `unavailable` without current totals of the
 * database, `uncounted` without memory for another value. `unpriced` is a call without a price.
 */
export type BudgetDecision =
  | 'allowed'
  | 'refused'
  | 'audited'
  | 'warned'
  | 'unavailable'
  | 'uncounted'
  | 'unpriced'

/** Meter of one budget. */
export type BudgetMeter = { count(decision: BudgetDecision): void }

export function createBudgetMeters(registry: MetricRegistry): (budget: string) => BudgetMeter {
  const decisions = registry.counter({
    name: 'tollgate_budget_decisions_total',
    help: 'Decisions of budgets, and calls without a price under a budget in US dollars.',
    labels: ['budget', 'decision'],
  })
  return (budget) => {
    const slots = {
      allowed: decisions.slot(budget, 'allowed'),
      refused: decisions.slot(budget, 'refused'),
      audited: decisions.slot(budget, 'audited'),
      warned: decisions.slot(budget, 'warned'),
      unavailable: decisions.slot(budget, 'unavailable'),
      uncounted: decisions.slot(budget, 'uncounted'),
      unpriced: decisions.slot(budget, 'unpriced'),
    }
    return {
      count(decision) {
        slots[decision].value += 1
      },
    }
  }
}
