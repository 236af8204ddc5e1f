import type { Clock } from '../../../lib/clock.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { KeyLimit } from '../../../pipeline/keys/key-limits.ts'
import type { LimitStatus } from '../../../pipeline/limits/limits.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import { recordLimit } from '../../../pipeline/recording/recording.ts'
import type { LimitMeter } from '../../../telemetry/metrics/limits.ts'
import { type Bucket, secondsToRefill } from '../bucket.ts'
import { rateLimitReply } from '../headers.ts'
import { wholeMs } from '../limit.ts'
import {
  chargeTokens,
  releaseReservations,
  reportLimits,
  requestLimitsOf,
  spendsTokens,
} from '../request-limits.ts'
import { createKeyBuckets, type KeyBuckets } from './key-buckets.ts'

/** Label of the limits of all keys in metrics: ids of keys would be unbounded. */
const keyLimitsLabel = 'apiKey'

type Step = {
  readonly buckets: KeyBuckets
  readonly meter: LimitMeter
  readonly clock: Clock
  readonly hasTokens: boolean
}

/**
 * Compiles the limits of the virtual keys of a request (`exchange.auth.limits`). Counts belong to the key,
 * over all routes, and survive reloads and rotations. Without `hasTokens`, token limits have no effect.
 */
export function compileKeyLimits(context: CompileContext, { hasTokens }: { hasTokens: boolean }): Policy {
  const step: Step = {
    buckets: keyBucketsOf(context),
    meter: context.metrics.limit(keyLimitsLabel),
    clock: context.clock,
    hasTokens,
  }
  return {
    name: 'key limits',
    onRequest: (exchange) =>
      exchange.auth.limits === undefined ? undefined : admit(exchange, exchange.auth.limits, step),
    onReply: reportLimits,
  }
}

/**
 * Charges the tokens of a call at its end. Policies end in the order of entry, so its place is after the
 * policy that settles the usage.
 */
export const keyTokenCharges: Policy = { name: 'token charges of key limits', onEnd: chargeTokens }

/** Buckets of the process. */
export function keyBucketsOf({ retained, memory }: CompileContext): KeyBuckets {
  return retained('key limits', () => createKeyBuckets(memory))
}

function admit(exchange: Exchange, all: readonly KeyLimit[], step: Step): Reply | undefined {
  const { buckets, clock, hasTokens, meter } = step
  const nowMs = wholeMs(clock)
  const mayCostTokens = hasTokens && spendsTokens(exchange)
  const limits = mayCostTokens ? all : all.filter(({ counts }) => counts === 'requests')
  const requestLimits = requestLimitsOf(exchange)
  for (const [index, limit] of limits.entries()) {
    if (!buckets.take(limit, limit.counts === 'requests' ? 1 : 0, nowMs)) {
      giveBack(limits.slice(0, index), buckets, nowMs)
      meter.refused()
      return refuse(exchange, limits, step, nowMs)
    }
    const status = statusOf(limit, buckets.bucket, nowMs)
    record(exchange, limit, status, false)
    const { counts } = limit
    if (status.remaining < (requestLimits[counts]?.remaining ?? Number.POSITIVE_INFINITY))
      requestLimits[counts] = status
  }
  if (limits.length === 0) return undefined
  meter.allowed()
  requestLimits.reservations.push({
    release: () => giveBack(limits, buckets, nowMs),
    charge(amount) {
      const atMs = wholeMs(clock)
      for (const limit of limits) if (limit.counts === 'tokens') buckets.charge(limit, amount, atMs)
    },
  })
  return undefined
}

function giveBack(limits: readonly KeyLimit[], buckets: KeyBuckets, takenAtMs: number): void {
  for (const limit of limits) if (limit.counts === 'requests') buckets.giveBack(limit, takenAtMs)
}

/** Refuses with the status of the exhausted limit that resets last. */
function refuse(exchange: Exchange, limits: readonly KeyLimit[], { buckets }: Step, nowMs: number): Reply {
  const requestLimits = requestLimitsOf(exchange)
  let longest: LimitStatus = { limit: 0, remaining: 0, resetSeconds: 1 }
  for (const limit of limits) {
    const isExhausted = !buckets.take(limit, 0, nowMs)
    const status = statusOf(limit, buckets.bucket, nowMs)
    record(exchange, limit, status, isExhausted)
    if (!isExhausted || status.resetSeconds < longest.resetSeconds) continue
    longest = status
    exchange.log.refusedBy = `rate-limit: ${keyLimitsLabel}: ${limit.label}`
  }
  releaseReservations(requestLimits)
  requestLimits.refused = longest
  return rateLimitReply(longest)
}

function statusOf(limit: KeyLimit, bucket: Bucket, nowMs: number): LimitStatus {
  const { capacity } = limit
  const resetSeconds = secondsToRefill(bucket, limit, nowMs)
  return { limit: capacity, remaining: Math.max(0, capacity - bucket.used), resetSeconds }
}

function record(
  { recording }: Exchange,
  { label, counts: unit }: KeyLimit,
  status: LimitStatus,
  refused: boolean,
) {
  if (recording === undefined) return
  recordLimit(recording, { limit: `${keyLimitsLabel}: ${label}`, unit, refused }, status)
}
