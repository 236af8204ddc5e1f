import { acquireLock, releaseLock } from '../../../../lib/planes/lock.ts'
import type { Region } from '../../../../lib/planes/memory.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import type { Health } from '../../../../upstream/health.ts'
import { announcedWaitMs } from './announced-wait.ts'

/**
 * Eviction of a target after failures: other targets are tried first until its end. Then one request at a
 * time is admitted, until one succeeds. The state is the same for all data planes, and outlives reloads.
 */
export type Eviction = {
  /** Whether the target may be tried before others. Reserves the trial after an eviction for the caller. */
  admits(): boolean
  /** Counts a response. Returns whether it is a failure of the target. */
  responded(reply: Pick<Reply, 'status' | 'headers'>, facts: Facts): boolean
  /** Counts a failure without a usable response. */
  failed(): void
  /** Ends a trial without a result: the request was not sent, or the client disconnected. */
  undecided(): void
}

// Words of the region after the lock and its description:
//   int32[4]    consecutive evictions without a success
//   float64[3]  `Clock.monotonic()` at the end of the eviction; 0 without one
//   float64[4]  end of the reservation for a trial
const stateBytes = 40
const evictionsCell = 4
const untilCell = 3
const trialCell = 4

const firstEvictionMs = 3_000
const maxEvictionMs = 300_000
/** A trial without a result after this time does not prevent another one. */
const trialMs = 60_000

export type EvictionOptions = {
  /** Key of the state across reloads. */
  name: string
  /** Label of metrics. */
  place: string
  /** Configured health, which decides on evictions and their duration. */
  health: Health | undefined
}

/** 5xx and 429: another target may serve the request. */
export function isFailure(status: number): boolean {
  return status >= 500 || status === 429
}

/** Compiles the eviction of a target. */
export function compileEviction(
  { name, place, health }: EvictionOptions,
  { memory, retained, clock, metrics }: CompileContext,
): Eviction {
  const state = retained(name, () => ({ region: memory.region(name, stateBytes) }))
  const own = createState(state, memory.plane)
  const meter = metrics.destination(place)
  const endOf = health ? health.ejectedUntil : own.until

  function evict(waitMs: number | undefined): void {
    if (own.evict(clock.monotonic(), waitMs)) meter.ejected()
  }

  return {
    admits() {
      const until = endOf()
      if (until === 0) return true
      const now = clock.monotonic()
      return until <= now && own.reserveTrial(now)
    },
    responded(reply, facts) {
      if (health) {
        const failed = health.responded(reply, facts)
        own.endTrial()
        return failed
      }
      const failed = isFailure(reply.status)
      if (failed) evict(announcedWaitMs(reply.headers, clock.now()))
      else own.restore()
      return failed
    },
    failed() {
      if (health) {
        health.failed()
        own.endTrial()
      } else evict(undefined)
    },
    undecided: own.endTrial,
  }
}

/** Duration of an eviction: as announced by the response, else doubled by each one without a success. */
export function evictionMs(evictions: number, announcedMs: number | undefined): number {
  return Math.min(announcedMs ?? firstEvictionMs * 2 ** (evictions - 1), maxEvictionMs)
}

function createState(state: { readonly region: Region }, plane: number) {
  /** Runs `change` under the lock; not on memory that is not bound yet. */
  function locked<T>(otherwise: T, change: (region: Region) => T): T {
    const { region } = state
    if (region.int32.length === 0) return otherwise
    acquireLock(region.int32, 0, plane)
    const result = change(region)
    releaseLock(region.int32, 0)
    return result
  }

  return {
    until: () => state.region.float64[untilCell] ?? 0,
    /** Starts an eviction unless one lasts; returns whether it started. */
    evict: (now: number, waitMs: number | undefined) =>
      locked(false, ({ int32, float64 }) => {
        float64[trialCell] = 0
        if ((float64[untilCell] ?? 0) > now) return false
        const evictions = (int32[evictionsCell] ?? 0) + 1
        int32[evictionsCell] = evictions
        float64[untilCell] = now + evictionMs(evictions, waitMs)
        return true
      }),
    restore() {
      // Skip the lock in the common case.
      if ((state.region.float64[untilCell] ?? 0) === 0) return
      locked(undefined, ({ int32, float64 }) => {
        int32[evictionsCell] = 0
        float64[untilCell] = 0
        float64[trialCell] = 0
      })
    },
    reserveTrial: (now: number) =>
      locked(true, ({ float64 }) => {
        if ((float64[trialCell] ?? 0) > now) return false
        float64[trialCell] = now + trialMs
        return true
      }),
    endTrial() {
      if ((state.region.float64[trialCell] ?? 0) === 0) return
      locked(undefined, ({ float64 }) => {
        float64[trialCell] = 0
      })
    },
  }
}
