import type { Clock } from '../lib/clock.ts'
import { parseDuration } from '../lib/duration.ts'
import { acquireLock, releaseLock } from '../lib/planes/lock.ts'
import type { Region } from '../lib/planes/memory.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { BackendPolicies } from './config.ts'

/** Passive health of a destination: ejection after failures, for the whole process. */
export type Health = {
  isEjected(): boolean
  succeeded(): void
  failed(): void
}

// Health state of a destination, the same for all data planes: a lock with its description, then
//   int32[4]    consecutive failures
//   int32[5]    consecutive ejections without a success
//   float64[3]  `Clock.monotonic()` at the end of the ejection
const stateBytes = 32
const failuresCell = 4
const ejectionsCell = 5
const ejectedUntilCell = 3

const defaultDuration = '3s'
const defaultConsecutiveFailures = 1
const maxEjectedMs = 300_000

/** Compiles the health of a destination; undefined without eviction. `place` is its key across reloads. */
export function compileHealth(
  { eviction }: NonNullable<BackendPolicies['health']>,
  place: string,
  context: CompileContext,
): Health | undefined {
  if (eviction === undefined) return undefined
  const { clock, memory, retained, metrics } = context
  const name = `destinations/health/${place}`
  const state = retained(name, () => ({ region: memory.region(name, stateBytes) }))
  const durationMs = parseDuration(eviction.duration ?? defaultDuration) ?? 0
  const limit = eviction.consecutiveFailures ?? defaultConsecutiveFailures
  const health = createHealth(state, { durationMs, limit, plane: memory.plane }, clock)
  return {
    ...health,
    failed() {
      health.failed()
      if (!health.isEjected()) return
      const message = `ejected after ${limit} consecutive failures`
      metrics.conditions.report({
        ...{ kind: 'destination', subject: place, message },
        isPresent: health.isEjected,
      })
    },
  }
}

type Ejection = { durationMs: number; limit: number; plane: number }

function createHealth(
  state: { readonly region: Region },
  { durationMs, limit, plane }: Ejection,
  { monotonic }: Clock,
): Health {
  function ejectedUntil(): number {
    return state.region.float64[ejectedUntilCell] ?? 0
  }

  /** An endpoint activated without compilation is healthy until its memory is bound, soon after. */
  function isBound(): boolean {
    return state.region.int32.length > 0
  }

  function fail({ int32, float64 }: Region, now: number): void {
    const failures = (int32[failuresCell] ?? 0) + 1
    int32[failuresCell] = failures
    // Without a success since an ejection, the next failure ejects again.
    if (failures < limit || ejectedUntil() > now) return
    const ejections = (int32[ejectionsCell] ?? 0) + 1
    int32[ejectionsCell] = ejections
    float64[ejectedUntilCell] = now + Math.min(durationMs * ejections, maxEjectedMs)
  }

  return {
    isEjected() {
      const until = ejectedUntil()
      return until > 0 && until > monotonic()
    },
    succeeded() {
      const { int32, float64 } = state.region
      // Skip the write in the common case.
      if (int32[failuresCell] === 0 || !isBound()) return
      acquireLock(int32, 0, plane)
      int32[failuresCell] = 0
      int32[ejectionsCell] = 0
      float64[ejectedUntilCell] = 0
      releaseLock(int32, 0)
    },
    failed() {
      if (!isBound()) return
      const { region } = state
      const now = monotonic()
      acquireLock(region.int32, 0, plane)
      fail(region, now)
      releaseLock(region.int32, 0)
    },
  }
}
