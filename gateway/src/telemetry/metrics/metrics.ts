import type { AdmissionMeter } from '../../net/listener/admission.ts'
import { type Conditions, createConditions } from '../live/conditions.ts'
import { createLiveMeter, type LiveMeter } from '../live/live-counts.ts'
import { type BudgetMeter, createBudgetMeters } from './budgets.ts'
import { type ConfigMeter, createConfigMeter } from './config.ts'
import { createMetricRegistry, type MetricRegistry } from './families.ts'
import { createLedgerMeter, type LedgerMeter } from './ledger.ts'
import {
  createAdmissionMeters,
  createGlobalLimitMeters,
  createLimitMeters,
  createSharedLimitGauge,
  type GlobalLimitMeter,
  type LimitMeter,
} from './limits.ts'
import { createLlmMeters, type LlmMeter } from './llm.ts'
import { createRouteMeters, type RouteMeter } from './routes.ts'
import { createGuardMeters, createRuleMeters, type GuardMeter, type RuleMeter } from './rules-and-guards.ts'
import { createTcpMeters, type TcpMeter } from './tcp.ts'
import { createWorkerMeter, type WorkerMeter } from './workers.ts'

/** Metrics of the process, as meters by subject. */
export type Metrics = ConfigMeter &
  Pick<MetricRegistry, 'dump' | 'render'> & {
    route(name: string): RouteMeter
    llm(model: string, provider: string): LlmMeter
    limit(name: string): LimitMeter
    globalLimit(name: string): GlobalLimitMeter
    /** Reports whether limits with `scope: shared` are counted with other processes. */
    sharedLimits(isConnected: boolean): void
    budget(name: string): BudgetMeter
    rule(name: string): RuleMeter
    guard(name: string): GuardMeter
    tcp(route: string): TcpMeter
    readonly workers: WorkerMeter
    readonly ledger: LedgerMeter
    /** Meter of one limit on client resources. */
    admission(resource: string): AdmissionMeter
    /** Totals of all routes and models, for the console. */
    readonly live: LiveMeter
    readonly conditions: Conditions
    /** Active requests of clients. */
    activeRequests(): number
  }

export function createMetrics(now: () => number = Date.now): Metrics {
  const registry = createMetricRegistry()
  const live = createLiveMeter()
  const admission = createAdmissionMeters(registry)
  return {
    live,
    conditions: createConditions(now),
    activeRequests: () => admission.inUse('requests'),
    route: createRouteMeters(registry),
    llm: createLlmMeters(registry, live),
    limit: createLimitMeters(registry),
    globalLimit: createGlobalLimitMeters(registry),
    sharedLimits: createSharedLimitGauge(registry),
    budget: createBudgetMeters(registry),
    rule: createRuleMeters(registry),
    guard: createGuardMeters(registry),
    tcp: createTcpMeters(registry),
    admission: admission.meterOf,
    workers: createWorkerMeter(registry),
    ledger: createLedgerMeter(registry),
    ...createConfigMeter(registry),
    dump: registry.dump,
    render: registry.render,
  }
}
