import type { Clock } from '../../lib/clock.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange, LimitReservation, LimitStatus, RequestLimits } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { type Bucket, consume, returnUnit, secondsToRefill } from './bucket.ts'
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
  return {
    name: 'request limits',
    onRequest: (exchange) => admit(exchange, { limits, foreseeable, clock }),
    onReply: reportLimits,
  }
}

function latePolicy(limits: readonly Limit[], clock: Clock): Policy {
  const step = { limits, foreseeable: [], clock }
  const limitsOnReads = limits.filter((limit) => limit.counts === 'requests')
  const stepForReads = { ...step, limits: limitsOnReads }
  return {
    name: limitsOnReads.length === limits.length ? 'request limits after the body' : 'token limits',
    onRequest: (exchange) => admit(exchange, spendsTokens(exchange) ? step : stepForReads),
    onReply: reportLimits,
    onEnd: chargeTokens,
  }
}

type Step = {
  limits: readonly Limit[]
  /** Limits of a later step that can be evaluated in this one. */
  foreseeable: readonly Limit[]
  clock: Clock
}

/** Checks all limits before it counts, so that a refused request consumes nothing. */
function admit(exchange: Exchange, step: Step): Reply | undefined {
  const { limits, clock } = step
  const nowMs = wholeMs(clock)
  const buckets: Bucket[] = []
  let exhausted = false
  for (const limit of limits) {
    const bucket = limit.bucketOf(exchange, nowMs)
    buckets.push(bucket)
    if (isExhausted(limit, bucket)) exhausted = true
  }
  const requestLimits = requestLimitsOf(exchange)
  if (exhausted) return refuse(exchange, requestLimits, { ...step, buckets, nowMs })
  let requests = requestLimits.requests
  let tokens = requestLimits.tokens
  for (let index = 0; index < limits.length; index++) {
    const limit = limits[index]
    const bucket = buckets[index]
    if (limit === undefined || bucket === undefined) continue
    limit.meter.allowed()
    if (limit.counts === 'requests') {
      consume(bucket, limit.rate, 1)
      requests = closer(requests, limit, { bucket, nowMs })
    } else {
      tokens = closer(tokens, limit, { bucket, nowMs })
    }
  }
  requestLimits.requests = requests
  requestLimits.tokens = tokens
  requestLimits.reservations.push(reserve(limits, buckets, { clock, takenAtMs: nowMs }))
  return undefined
}

/**
 * Whether another request exceeds the limit. For tokens: whether none remain, because usage is unknown until
 * the end.
 */
function isExhausted({ rate }: Limit, bucket: Bucket): boolean {
  return bucket.used >= rate.capacity
}

type Moment = { bucket: Bucket; nowMs: number }

function closer(status: LimitStatus | undefined, { rate }: Limit, { bucket, nowMs }: Moment): LimitStatus {
  const remaining = rate.capacity - bucket.used
  if (status !== undefined && status.remaining <= remaining) return status
  return { limit: rate.capacity, remaining, resetSeconds: secondsToRefill(bucket, rate, nowMs) }
}

type Refused = Step & { buckets: readonly Bucket[]; nowMs: number }

/**
 * Refuses with the headers of the exhausted limit that resets last: after its reset all limits admit the
 * request.
 */
function refuse(exchange: Exchange, requestLimits: RequestLimits, step: Refused): Reply {
  const { limits, buckets, nowMs } = step
  let longest: LimitStatus = { limit: 0, remaining: 0, resetSeconds: 0 }
  let label = ''
  limits.forEach((limit, index) => {
    const bucket = buckets[index]
    if (bucket === undefined || !isExhausted(limit, bucket)) return
    limit.meter.refused()
    const status = closer(undefined, limit, { bucket, nowMs })
    if (status.resetSeconds <= longest.resetSeconds) return
    longest = status
    label = limit.label
  })
  for (const limit of spendsTokens(exchange) ? step.foreseeable : []) {
    const bucket = limit.bucketOf(exchange, nowMs)
    if (!isExhausted(limit, bucket)) continue
    const status = closer(undefined, limit, { bucket, nowMs })
    if (status.resetSeconds > longest.resetSeconds) longest = status
  }
  releaseReservations(requestLimits)
  requestLimits.refused = longest
  exchange.log.refusedBy = `rate-limit: ${label}`
  return rateLimitReply(longest)
}

type ReservationOptions = { clock: Clock; takenAtMs: number }

function reserve(
  limits: readonly Limit[],
  buckets: readonly Bucket[],
  { clock, takenAtMs }: ReservationOptions,
): LimitReservation {
  return {
    release() {
      limits.forEach(({ counts }, index) => {
        const bucket = buckets[index]
        if (bucket !== undefined && counts === 'requests') returnUnit(bucket, takenAtMs)
      })
    },
    charge(amount) {
      const nowMs = wholeMs(clock)
      limits.forEach((limit, index) => {
        const bucket = buckets[index]
        if (bucket !== undefined && limit.counts === 'tokens') limit.charge(bucket, amount, nowMs)
      })
    },
  }
}
