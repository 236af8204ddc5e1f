import type { Clock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { ExtAuthzMeter } from '../../telemetry/metrics/services.ts'
import { type Breaker, createBreaker } from '../../upstream/grpc-service/breaker.ts'
import type { Answer } from './cache.ts'
import type { RequestView } from './request-view.ts'

/** Call of the service without a decision. `isUnanswered` counts against the circuit breaker. */
export class ServiceFailure extends Error {
  readonly isUnanswered: boolean

  constructor(message: string, options: ErrorOptions & { isUnanswered: boolean }) {
    super(message, options)
    this.name = 'ServiceFailure'
    this.isUnanswered = options.isUnanswered
  }
}

/** A request whose expressions have no valid value: it is refused, whatever the failure mode. */
export class RequestFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RequestFailure'
  }
}

/** Asks the service about a request. Rejects with `ServiceFailure`, `RequestFailure` or `InvalidDecision`. */
export type Ask = (view: RequestView, deadlineMs: number) => Promise<Answer>

/** Active calls, and calls that wait, of each worker thread and service. */
const maxActive = 1_000
const maxWaiting = 10_000

/** Bounds the calls of a service. */
export type CallSlots = {
  /** Resolves with false when the deadline passes before a slot is free. */
  acquire(deadlineMs: number): boolean | Promise<boolean>
  release(): void
}

function createCallSlots(active = maxActive, waiting = maxWaiting): CallSlots {
  let used = 0
  const queue = new Set<(isFree: boolean) => void>()
  return {
    acquire(deadlineMs) {
      if (used < active) {
        used += 1
        return true
      }
      if (queue.size >= waiting) return false
      return new Promise((resolve) => {
        const enter = (isFree: boolean) => {
          queue.delete(enter)
          clearTimeout(timer)
          resolve(isFree)
        }
        const timer = setTimeout(enter, deadlineMs, false)
        queue.add(enter)
      })
    },
    release() {
      const [next] = queue
      if (next === undefined) used -= 1
      else next(true)
    },
  }
}

/** Circuit breaker and slots of a service, shared by all policies that call it. */
export type GuardedService = { readonly breaker: Breaker; readonly slots: CallSlots; readonly clock: Clock }

export function guardedService(key: string, context: CompileContext): GuardedService {
  const name = `service/breaker/${key}`
  return {
    breaker: context.retained(name, () => createBreaker(context.memory, name, context.clock)),
    slots: context.retained(`ext-authz/slots/${key}`, () => createCallSlots()),
    clock: context.clock,
  }
}

/** Adds circuit breaker, slots and deadline to calls. */
export function guardCalls({ breaker, slots, clock }: GuardedService, timeoutMs: number, ask: Ask) {
  return async (view: RequestView): Promise<Answer> => {
    if (!breaker.admits())
      throw new ServiceFailure('not called: the last calls had no response', { isUnanswered: false })
    const startedAt = clock.monotonic()
    const turn = slots.acquire(timeoutMs)
    if (!(turn === true || (await turn)))
      throw new ServiceFailure('too many calls are in progress', { isUnanswered: false })
    try {
      const answer = await ask(view, Math.max(1, timeoutMs - (clock.monotonic() - startedAt)))
      breaker.succeeded()
      return answer
    } catch (error) {
      if (!(error instanceof RequestFailure)) {
        if (error instanceof ServiceFailure && error.isUnanswered) breaker.failed()
        else breaker.succeeded()
      }
      throw error
    } finally {
      slots.release()
    }
  }
}

/** Metrics and log of the policy of one scope. Survives reloads. */
export type ExtAuthzState = {
  readonly meter: ExtAuthzMeter
  /** Records a request without a decision. */
  recordFailure(error: unknown): void
}

/** Minimum interval between log lines about an unavailable service. */
const quietMs = 10_000

export function extAuthzState(
  label: string,
  { clock, log, metrics, retained }: CompileContext,
): ExtAuthzState {
  return retained(`ext-authz/${label}`, () => {
    let loggedAt = Number.NEGATIVE_INFINITY
    return {
      meter: metrics.extAuthz(label),
      recordFailure(error) {
        if (clock.monotonic() - loggedAt < quietMs) return
        loggedAt = clock.monotonic()
        log.warn({ policy: label, reason: messageOf(error) }, 'authorization service failed')
      },
    }
  })
}
