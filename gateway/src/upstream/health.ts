import type { Clock } from '../lib/clock.ts'
import { parseDuration } from '../lib/duration.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { BackendPolicies } from './config.ts'

/** Whether a destination is left out for a while, because it fails. */
export type Health = {
  isEjected(): boolean
  succeeded(): void
  failed(): void
}

/** What is remembered of a destination, across reloads. */
type HealthState = {
  /** Failures in a row. */
  failures: number
  /** Ejections in a row without a success between them. */
  ejections: number
  /** `Clock.monotonic()` from which on it is asked again. */
  ejectedUntil: number
}

const defaultDuration = '3s'
const defaultConsecutiveFailures = 1
const maxEjectedMs = 300_000

/** The health of a destination, undefined where failures have no consequences. `place` names it across reloads. */
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
      // Written only where it changes something: almost every call succeeds.
      if (state.failures === 0) return
      state.failures = 0
      state.ejections = 0
      state.ejectedUntil = 0
    },
    failed() {
      state.failures += 1
      // Once it was ejected, the next failure does it again: it has not shown that it is back.
      if (state.failures < limit) return
      const now = monotonic()
      if (state.ejectedUntil > now) return
      state.ejections += 1
      state.ejectedUntil = now + Math.min(durationMs * state.ejections, maxEjectedMs)
    },
  }
}
