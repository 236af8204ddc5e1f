import type { Clock } from '../../lib/clock.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { LimitReservation, LimitStatus, RequestLimits } from '../../pipeline/limits/limits.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { recordLimit } from '../../pipeline/recording/recording.ts'
import { consume, isExhausted, secondsToRefill } from './bucket.ts'
import type { BucketReference } from './buckets.ts'
import { rateLimitReply } from './headers.ts'
import { compileLimits, type Limit, type LimitOptions, wholeMs } from './limit.ts'
import { type LocalRateLimitConfig, limitRule } from './local-config.ts'
import {
  chargeTokens,
  releaseReservations,
  reportLimits,
  requestLimitsOf,
  spendsTokens,
} from './request-limits.ts'

/** Local limits of one scope as up to two steps of a route. */
export type LocalRateLimit = {
  /** Request limits. */
  beforeBody: Policy | undefined
  /** Token limits, and limits whose key needs the body. */
  afterBody: Policy | undefined
}

/**
 * Compiles the limits of a scope (specification, "Rate limit rules"). Counts belong to the scope and survive
 * reloads.
 */
export function compileLocalRateLimit(
  config: LocalRateLimitConfig,
  context: CompileContext,
  options: LimitOptions,
): LocalRateLimit {
  const limits = compileLimits(config.map(limitRule), context, options)
  const early = limits.filter((limit) => limit.counts === 'requests' && !limit.needsBody)
  const late = limits.filter((limit) => !early.includes(limit))
  return {
    beforeBody: early.length === 0 ? undefined : earlyPolicy(early, late, context.clock),
    afterBody: late.length === 0 ? undefined : latePolicy(late, context.clock),
  }
}

function earlyPolicy(limits: readonly Limit[], late: readonly Limit[], clock: Clock): Policy {
  const foreseeable = late.filter((limit) => !limit.needsBody)
  const step = { ...stepOf(limits, clock), foreseeable }
  return {
    name: 'request limits',
    onRequest: (exchange) => admit(exchange, step),
    onReply: reportLimits,
  }
}

function latePolicy(limits: readonly Limit[], clock: Clock): Policy {
  const step = stepOf(limits, clock)
  const limitsOnReads = limits.filter((limit) => limit.counts === 'requests')
  const stepForReads = stepOf(limitsOnReads, clock)
  return {
    name: limitsOnReads.length === limits.length ? 'request limits after the body' : 'token limits',
    onRequest: (exchange) => admit(exchange, spendsTokens(exchange) ? step : stepForReads),
    onReply: reportLimits,
    onEnd: chargeTokens,
  }
}

type Step = {
  readonly limits: readonly Limit[]
  /** The same limits in the order of their locks: equal in all steps, so that none waits for another. */
  readonly lockOrder: readonly Limit[]
  /** Limits of a later step that can be evaluated in this one. */
  readonly foreseeable: readonly Limit[]
  /** Limits that select a bucket for each request. */
  readonly keyed: readonly Limit[]
  readonly clock: Clock
}

function stepOf(limits: readonly Limit[], clock: Clock): Step {
  const lockOrder = limits.toSorted((a, b) => (a.memory < b.memory ? -1 : 1))
  const keyed = limits.filter((limit) => limit.selects)
  return { limits, lockOrder, foreseeable: [], keyed, clock }
}

/** Checks all limits before it counts, so that a refused request consumes nothing. */
function admit(exchange: Exchange, step: Step): Reply | undefined {
  const { limits, lockOrder, keyed, clock } = step
  const nowMs = wholeMs(clock)
  for (const limit of keyed) limit.select(exchange)
  lockAll(lockOrder, nowMs)
  const isAdmitted = exchange.llm?.isCommitted === true || !limits.some(isLimitExhausted)
  if (isAdmitted) limits.forEach(consumeRequest)
  for (const { buckets } of lockOrder) buckets.unlock()
  for (const { buckets } of keyed) buckets.settle(nowMs)
  const requestLimits = requestLimitsOf(exchange)
  if (!isAdmitted) return refuse(exchange, requestLimits, step, nowMs)
  let requests = requestLimits.requests
  let tokens = requestLimits.tokens
  for (const limit of limits) {
    limit.meter.allowed()
    recordStatus(exchange, limit, nowMs, false)
    if (limit.counts === 'requests') requests = closer(requests, limit, nowMs)
    else tokens = closer(tokens, limit, nowMs)
  }
  requestLimits.requests = requests
  requestLimits.tokens = tokens
  requestLimits.reservations.push(reserve(step, nowMs))
  return undefined
}

function lockAll(lockOrder: readonly Limit[], nowMs: number): void {
  let locked = 0
  try {
    while (locked < lockOrder.length) {
      const limit = lockOrder[locked]
      if (limit === undefined) return
      if (limit.buckets.lock(limit.rate, nowMs)) {
        locked += 1
        continue
      }
      for (; locked > 0; locked--) lockOrder[locked - 1]?.buckets.unlock()
      limit.buckets.makeRoom(nowMs)
    }
  } catch (error) {
    for (; locked > 0; locked--) lockOrder[locked - 1]?.buckets.unlock()
    throw error
  }
}

/**
 * Whether another request exceeds the limit. For tokens: whether none remain, because usage is unknown until
 * the end.
 */
function isLimitExhausted({ rate, buckets }: Limit): boolean {
  return isExhausted(buckets.bucket, rate)
}

function consumeRequest({ counts, rate, buckets }: Limit): void {
  if (counts === 'requests') consume(buckets.bucket, rate, 1)
}

function closer(
  status: LimitStatus | undefined,
  { rate, buckets: { bucket } }: Limit,
  nowMs: number,
): LimitStatus {
  // On an older configuration the capacity may be less than the used units.
  const remaining = Math.max(0, rate.capacity - bucket.used)
  if (status !== undefined && status.remaining <= remaining) return status
  return { limit: rate.capacity, remaining, resetSeconds: secondsToRefill(bucket, rate, nowMs) }
}

/** Records the status of a limit for the ledger: before counting if the request is refused. */
function recordStatus({ recording }: Exchange, limit: Limit, nowMs: number, refused: boolean): void {
  if (recording === undefined) return
  const { label, counts: unit } = limit
  recordLimit(recording, { limit: label, unit, refused }, closer(undefined, limit, nowMs))
}

/**
 * Refuses with the headers of the exhausted limit that resets last: after its reset all limits admit the
 * request.
 */
function refuse(exchange: Exchange, requestLimits: RequestLimits, step: Step, nowMs: number): Reply {
  let longest: LimitStatus = { limit: 0, remaining: 0, resetSeconds: 0 }
  let label = ''
  for (const limit of step.limits) {
    recordStatus(exchange, limit, nowMs, isLimitExhausted(limit))
    if (!isLimitExhausted(limit)) continue
    limit.meter.refused()
    const status = closer(undefined, limit, nowMs)
    if (status.resetSeconds <= longest.resetSeconds) continue
    longest = status
    label = limit.label
  }
  for (const limit of spendsTokens(exchange) ? step.foreseeable : []) {
    limit.select(exchange)
    lockAll([limit], nowMs)
    limit.buckets.unlock()
    limit.buckets.settle(nowMs)
    if (!isLimitExhausted(limit)) continue
    const status = closer(undefined, limit, nowMs)
    if (status.resetSeconds > longest.resetSeconds) longest = status
  }
  releaseReservations(requestLimits)
  requestLimits.refused = longest
  exchange.log.refusedBy = `rate-limit: ${label}`
  return rateLimitReply(longest)
}

/** References to the buckets of a request, which no other request may select until then. */
function reserve({ limits, keyed, clock }: Step, takenAtMs: number): LimitReservation {
  const references = keyed.length > 0 ? limits.map(referenceOf) : undefined
  return {
    release() {
      limits.forEach(({ counts, buckets }, index) => {
        if (counts === 'requests') buckets.giveBack(references?.[index] ?? buckets.reference(), takenAtMs)
      })
    },
    charge(amount) {
      const nowMs = wholeMs(clock)
      limits.forEach(({ counts, buckets }, index) => {
        if (counts === 'tokens') buckets.charge(references?.[index] ?? buckets.reference(), amount, nowMs)
      })
    },
  }
}

function referenceOf({ buckets }: Limit): BucketReference {
  return buckets.reference()
}
