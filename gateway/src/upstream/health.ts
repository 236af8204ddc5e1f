import type { Clock } from '../lib/clock.ts'
import { parseDuration } from '../lib/duration.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { BackendPolicies } from './config.ts'

/** Passive health of a destination: ejection after failures. */
export type Health = {
  isEjected(): boolean
  succeeded(): void
  failed(): void
}

/** Health state of a destination, retained across reloads. */
type HealthState = {
  /** Consecutive failures. */
  failures: number
  /** Consecutive ejections without a success. */
  ejections: number
  /** `Clock.monotonic()` at the end of the ejection. */
  ejectedUntil: number
}

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
  const state = context.retained<HealthState>(`destinations/health/${place}`, () => ({
    failures: 0,
    ejections: 0,
    ejectedUntil: 0,
  }))
  const durationMs = parseDuration(eviction.duration ?? defaultDuration) ?? 0
  const limit = eviction.consecutiveFailures ?? defaultConsecutiveFailures
  return createHealth(state, { durationMs, limit }, context.clock)
}

function createHealth(
  state: HealthState,
  { durationMs, limit }: { durationMs: number; limit: number },
  { monotonic }: Clock,
): Health {
  return {
    isEjected: () => state.ejectedUntil > 0 && state.ejectedUntil > monotonic(),
    succeeded() {
      // Skip the write in the common case.
      if (state.failures === 0) return
      state.failures = 0
      state.ejections = 0
      state.ejectedUntil = 0
    },
    failed() {
      state.failures += 1
      // Without a success since an ejection, the next failure ejects again.
      if (state.failures < limit) return
      const now = monotonic()
      if (state.ejectedUntil > now) return
      state.ejections += 1
      state.ejectedUntil = now + Math.min(durationMs * state.ejections, maxEjectedMs)
    },
  }
}
