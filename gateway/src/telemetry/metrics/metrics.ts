import type { AdmissionMeter } from '../../net/listener/admission.ts'
import { type Conditions, createConditions } from '../live/conditions.ts'
import { createLiveMeter, type LiveMeter } from '../live/live-counts.ts'
import { createTelemetryMeters, type TelemetryMeters } from '../otlp/export-meters.ts'
import { type ConfigMeter, createConfigMeter } from './config.ts'
import { createDestinationMeters, type DestinationMeter } from './destinations.ts'
import { createMetricRegistry, type MetricRegistry } from './families.ts'
import { createLedgerMeter, type LedgerMeter } from './ledger.ts'
import {
  type BudgetMeter,
  createAdmissionMeters,
  createBudgetMeters,
  createGlobalLimitMeters,
  createLimitMeters,
  createSharedLimitGauge,
  type GlobalLimitMeter,
  type LimitMeter,
} from './limits.ts'
import {
  type CacheDatabaseMeter,
  type CacheMeter,
  createCacheMeters,
  createDatabaseCacheMeters,
  createLlmMeters,
  type DatabaseCacheMeter,
  type LlmMeter,
} from './llm.ts'
import { createRouteMeters, type RouteMeter } from './routes.ts'
import {
  createGuardMeters,
  createRuleMeters,
  createTransformationMeters,
  type GuardMeter,
  type RuleMeter,
  type TransformationMeter,
} from './rules-and-guards.ts'
import {
  type A2aMeter,
  createA2aMeters,
  createExtAuthzMeters,
  createExtProcMeters,
  type ExtAuthzMeter,
  type ExtProcMeter,
} from './services.ts'
import { createTcpMeters, type TcpMeter } from './tcp.ts'
import { createWorkerMeter, type WorkerMeter } from './workers.ts'

/** Metrics of the process, as meters by subject. */
export type Metrics = ConfigMeter &
  Pick<MetricRegistry, 'collect' | 'dump' | 'expose' | 'render'> & {
    route(name: string): RouteMeter
    llm(model: string, provider: string): LlmMeter
    llmCache(model: string): CacheMeter
    databaseCache(): DatabaseCacheMeter
    cacheDatabase(): CacheDatabaseMeter
    limit(name: string): LimitMeter
    globalLimit(name: string): GlobalLimitMeter
    /** Reports whether limits with `scope: shared` are counted with other processes. */
    sharedLimits(isConnected: boolean): void
    budget(name: string): BudgetMeter
    extProc(policy: string): ExtProcMeter
    rule(name: string): RuleMeter
    transformation(scope: string): TransformationMeter
    guard(name: string): GuardMeter
    extAuthz(policy: string): ExtAuthzMeter
    a2a(policy: string): A2aMeter
    destination(place: string): DestinationMeter
    tcp(route: string): TcpMeter
    readonly workers: WorkerMeter
    readonly ledger: LedgerMeter
    readonly telemetry: TelemetryMeters
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
    llmCache: createCacheMeters(registry),
    ...createDatabaseCacheMeters(registry),
    limit: createLimitMeters(registry),
    globalLimit: createGlobalLimitMeters(registry),
    sharedLimits: createSharedLimitGauge(registry),
    budget: createBudgetMeters(registry),
    extProc: createExtProcMeters(registry),
    rule: createRuleMeters(registry),
    transformation: createTransformationMeters(registry),
    guard: createGuardMeters(registry),
    extAuthz: createExtAuthzMeters(registry),
    a2a: createA2aMeters(registry),
    destination: createDestinationMeters(registry),
    tcp: createTcpMeters(registry),
    admission: admission.meterOf,
    workers: createWorkerMeter(registry),
    ledger: createLedgerMeter(registry),
    telemetry: createTelemetryMeters(registry),
    ...createConfigMeter(registry),
    collect: registry.collect,
    dump: registry.dump,
    expose: registry.expose,
    render: registry.render,
  }
}
