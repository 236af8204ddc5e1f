import { evaluateBoolean } from '../cel/cel.ts'
import { compileCheckedCel } from '../cel/checked.ts'
import { CelEvaluationError } from '../cel/failure.ts'
import type { Clock } from '../lib/clock.ts'
import { milliseconds } from '../lib/duration.ts'
import { acquireLock, releaseLock } from '../lib/planes/lock.ts'
import type { Region } from '../lib/planes/memory.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Facts } from '../pipeline/exchange.ts'
import type { BackendPolicies } from './config.ts'
import { healthRoots } from './health-roots.ts'
import { retryAfterMs } from './retry-after.ts'

/** Passive health of a destination: ejection after failures, for the whole process. */
export type Health = {
  isEjected(): boolean
  /** End of the ejection on the monotonic clock, or a time in the past. */
  ejectedUntil(): number
  succeeded(): void
  /** Counts a failure without a response. */
  failed(): void
  /** Counts a response as a success or as a failure. Returns whether it is a failure. */
  responded(reply: Pick<Reply, 'status' | 'headers'>, facts: HealthFacts): boolean
}

/** Variables of expressions besides `response`. Without them, expressions that read them fail. */
type HealthFacts = Partial<Pick<Facts, 'request' | 'source' | 'jwt'>>

// Health state of a destination, the same for all data planes: a lock with its description, then
//   int32[4]    consecutive failures
//   int32[5]    consecutive ejections without a success
//   float64[3]  `Clock.monotonic()` at the end of the ejection
//   float64[4]  1 - health, so that new memory is healthy
//   float64[5]  1 if `restoreHealth` applies at the end of the ejection
const stateBytes = 48
const failuresCell = 4
const ejectionsCell = 5
const ejectedUntilCell = 3
const illnessCell = 4
const restoresCell = 5
/** Health that counts as 1, so that successes of a healthy destination write nothing. */
const almostHealthy = 0.999
/** Weight of an outcome in the moving average. */
const outcomeWeight = 0.3

const belowThreshold = 'ejected after failures: health is below healthThreshold'
const defaultDurationMs = 3_000
const defaultConsecutiveFailures = 1
const maxEjectedMs = 300_000

/** Compiles the health of a destination; undefined without eviction. `place` is its key across reloads. */
export function compileHealth(
  config: NonNullable<BackendPolicies['health']>,
  place: string,
  context: CompileContext,
): Health | undefined {
  const { unhealthyExpression } = config
  const eviction = config.eviction ?? (unhealthyExpression === undefined ? undefined : {})
  if (eviction === undefined) return undefined
  const { clock, memory, retained, metrics } = context
  const name = `destinations/health/${place}`
  const state = retained(name, () => ({ region: memory.region(name, stateBytes) }))
  const fixedMs = milliseconds(eviction.duration)
  const isUnhealthy = compileCondition(unhealthyExpression)
  const meter = metrics.destination(place)
  const { healthThreshold, restoreHealth } = eviction
  // With a threshold only, no number of consecutive failures ejects.
  const limit =
    eviction.consecutiveFailures ??
    (healthThreshold === undefined ? defaultConsecutiveFailures : Number.POSITIVE_INFINITY)
  const rule = { limit, plane: memory.plane, healthThreshold, restoreHealth }
  const health = createHealth(state, rule, clock)
  return {
    ...health,
    failed: () => fail(undefined),
    responded({ status, headers }, facts) {
      const unhealthy = isUnhealthy({ status, headers }, facts)
      if (unhealthy) fail(fixedMs === undefined ? retryAfterMs(headers, clock.now()) : undefined)
      else health.succeeded()
      return unhealthy
    },
  }

  function fail(waitMs: number | undefined): void {
    const until = health.ejectedUntil()
    health.failed(fixedMs ?? waitMs ?? defaultDurationMs)
    if (!health.isEjected()) return
    if (health.ejectedUntil() !== until) meter.ejected()
    const message = Number.isFinite(limit) ? `ejected after ${limit} consecutive failures` : belowThreshold
    metrics.conditions.report({
      ...{ kind: 'destination', subject: place, message },
      isPresent: health.isEjected,
    })
  }
}

/** Compiles the condition of failures. If the expression fails, the status decides. */
function compileCondition(expression: string | undefined) {
  const byStatus = ({ status }: Pick<Reply, 'status'>) => status >= 500
  if (expression === undefined || expression.trim() === '') return byStatus
  const program = compileCheckedCel(expression, healthRoots)
  return (reply: Pick<Reply, 'status' | 'headers'>, { request, source, jwt }: HealthFacts): boolean => {
    const response = { code: reply.status, headers: reply.headers }
    try {
      return evaluateBoolean(program, { request, source, jwt, response })
    } catch (error) {
      if (error instanceof CelEvaluationError) return byStatus(reply)
      throw error
    }
  }
}

type Ejection = {
  /** Consecutive failures. */
  limit: number
  healthThreshold: number | undefined
  restoreHealth: number | undefined
  plane: number
}

function healthOf(float64: Float64Array): number {
  return 1 - (float64[illnessCell] ?? 0)
}

type EjectionState = Pick<Health, 'isEjected' | 'ejectedUntil' | 'succeeded'> & {
  failed(durationMs: number): void
}

function createHealth(
  state: { readonly region: Region },
  { limit, plane, healthThreshold, restoreHealth }: Ejection,
  { monotonic }: Clock,
): EjectionState {
  function ejectedUntil(): number {
    return state.region.float64[ejectedUntilCell] ?? 0
  }

  /** An endpoint activated without compilation is healthy until its memory is bound, soon after. */
  function isBound(): boolean {
    return state.region.int32.length > 0
  }

  function fail({ int32, float64 }: Region, now: number, durationMs: number): void {
    const failures = (int32[failuresCell] ?? 0) + 1
    int32[failuresCell] = failures
    restore(float64, now)
    const isBelow = healthThreshold !== undefined && healthOf(float64) < healthThreshold
    recordOutcome(float64, 0)
    // Without a success since an ejection, the next failure ejects again.
    if ((failures < limit && !isBelow) || ejectedUntil() > now) return
    float64[restoresCell] = 1
    const ejections = (int32[ejectionsCell] ?? 0) + 1
    int32[ejectionsCell] = ejections
    float64[ejectedUntilCell] = now + Math.min(durationMs * ejections, maxEjectedMs)
  }

  /** Applies `restoreHealth` once after the end of an ejection. */
  function restore(float64: Float64Array, now: number): void {
    if (restoreHealth === undefined || float64[restoresCell] !== 1 || ejectedUntil() > now) return
    float64[restoresCell] = 0
    float64[illnessCell] = 1 - restoreHealth
  }

  function recordOutcome(float64: Float64Array, outcome: 0 | 1): void {
    if (healthThreshold === undefined) return
    const health = healthOf(float64)
    // As in agentgateway, the first outcome after a health of 0 replaces it.
    const next = health === 0 ? outcome : outcomeWeight * outcome + (1 - outcomeWeight) * health
    float64[illnessCell] = next > almostHealthy ? 0 : 1 - next
  }

  return {
    isEjected() {
      const until = ejectedUntil()
      return until > 0 && until > monotonic()
    },
    succeeded() {
      const { int32, float64 } = state.region
      // Skip the write in the common case.
      if ((int32[failuresCell] === 0 && !(Number(float64[illnessCell]) > 0)) || !isBound()) return
      acquireLock(int32, 0, plane)
      restore(float64, monotonic())
      recordOutcome(float64, 1)
      int32[failuresCell] = 0
      int32[ejectionsCell] = 0
      float64[ejectedUntilCell] = 0
      releaseLock(int32, 0)
    },
    ejectedUntil,
    failed(durationMs) {
      if (!isBound()) return
      const { region } = state
      const now = monotonic()
      acquireLock(region.int32, 0, plane)
      fail(region, now, durationMs)
      releaseLock(region.int32, 0)
    },
  }
}
