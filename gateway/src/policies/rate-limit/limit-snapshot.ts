import { createHash } from 'node:crypto'
import type { CelProgram } from '../../cel/compile.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { type Bucket, refillBucket, secondsToRefill, usedAt } from './bucket.ts'
import { type GlobalRateLimitConfig, timeoutOf } from './global/config.ts'
import { type GlobalLimitCounts, globalLimitState, labelOf } from './global/state.ts'
import { compileLimits, type Limit, wholeMs } from './limit.ts'
import { type LocalRateLimitConfig, limitRule } from './local-config.ts'

/** Limits, and where they are configured. */
export type PlacedLimits = {
  place: string
  local: LocalRateLimitConfig
  global: GlobalRateLimitConfig | undefined
}

/** A limit of this process, as it is now. */
export type LocalReading = {
  place: string
  /** As in metrics and logs. */
  limit: string
  counts: 'requests' | 'tokens'
  /** Most that can be used at once. */
  capacity: number
  /** What comes back after each interval. */
  refill: number
  intervalSeconds: number
  state: BucketReading | KeyedReading
}

export type BucketReading = { remaining: number; resetSeconds: number }

export type KeyedReading = {
  /** The expression whose values are counted apart. */
  key: string
  /** Values that have a count of their own now. */
  values: number
  /** Those that refuse now. */
  exhausted: number
  /** The values with the least left, the least first. */
  fullest: ({ value: string } & BucketReading)[]
}

/** Limits at a service. What it counts is not known here. */
export type GlobalReading = {
  place: string
  limit: string
  domain: string
  service: string
  failureMode: 'failClosed' | 'failOpen'
  timeoutMs: number
  descriptors: { type: 'requests' | 'tokens'; keys: string[] }[]
  checks: GlobalLimitCounts['checks']
  reports: GlobalLimitCounts['reports'] & { pending: number }
  lastFailure: GlobalLimitCounts['lastFailure']
}

export type LimitReadings = { local: LocalReading[]; global: GlobalReading[] }

const fullestShown = 10

/** Reads limits as they are now, without changing what is counted. Traffic goes on in between. */
export async function readLimits(
  places: readonly PlacedLimits[],
  context: CompileContext,
): Promise<LimitReadings> {
  const readings: LimitReadings = { local: [], global: [] }
  for (const { place, local, global } of places) {
    for (const limit of compileLimits(local.map(limitRule), context, { place })) {
      readings.local.push(await readLimit(limit, place, context.clock))
    }
    if (global) readings.global.push(readGlobal(global, place, context))
  }
  return readings
}

async function readLimit(limit: Limit, place: string, clock: Clock): Promise<LocalReading> {
  const { label, counts, rate, key } = limit
  return {
    place,
    limit: label,
    counts,
    capacity: rate.capacity,
    refill: rate.refill,
    intervalSeconds: rate.intervalMs / 1000,
    state: key === undefined ? readOnly(limit, clock) : await readKeyed(limit, key, clock),
  }
}

function readOnly(limit: Limit, clock: Clock): BucketReading {
  const nowMs = wholeMs(clock)
  for (const part of limit.parts()) for (const { bucket } of part) return readBucket(bucket, limit, nowMs)
  return { remaining: limit.rate.capacity, resetSeconds: 0 }
}

/** Buckets that are read before traffic may have its turn. */
const readAtOnce = 5_000

async function readKeyed(limit: Limit, key: CelProgram, clock: Clock): Promise<KeyedReading> {
  const { rate } = limit
  const nowMs = wholeMs(clock)
  const fullest: { value: string | undefined; bucket: Bucket; remaining: number }[] = []
  let values = 0
  let exhausted = 0
  let seen = 0
  for (const part of limit.parts()) {
    for (const { value, bucket } of part) {
      const remaining = rate.capacity - usedAt(bucket, rate, nowMs)
      if (value !== undefined) values += 1
      if (remaining === 0) exhausted += 1
      seen += 1
      if (seen % readAtOnce === 0) await new Promise(setImmediate)
      const least = fullest.length === fullestShown ? fullest.at(-1)?.remaining : rate.capacity
      if (least !== undefined && remaining >= least) continue
      fullest.push({ value, bucket, remaining })
      fullest.sort((a, b) => a.remaining - b.remaining)
      fullest.length = Math.min(fullest.length, fullestShown)
    }
  }
  const shown = nameOf(key)
  return {
    key: key.source,
    values,
    exhausted,
    fullest: fullest.map(({ value, bucket }) => ({
      value: value === undefined ? '(shared)' : shown(value),
      ...readBucket(bucket, limit, nowMs),
    })),
  }
}

function readBucket(bucket: Bucket, { rate }: Limit, nowMs: number): BucketReading {
  const copy = { ...bucket }
  refillBucket(copy, rate, nowMs)
  return { remaining: rate.capacity - copy.used, resetSeconds: secondsToRefill(copy, rate, nowMs) }
}

/** Variables whose contents clients send, credentials among them. */
const sentByClients = ['request', 'llmRequest'] as const

/** Values that may be secrets are told apart by their hash. */
function nameOf({ roots }: CelProgram): (value: string) => string {
  if (!sentByClients.some((root) => roots.has(root))) return (value) => value
  return (value) => `sha256:${createHash('sha256').update(value).digest('hex').slice(0, 16)}`
}

function readGlobal(config: GlobalRateLimitConfig, place: string, context: CompileContext): GlobalReading {
  const { counts, reports } = globalLimitState(config, place, context)
  const failsOpen = config.failureMode === 'failOpen' || config.failureMode === 'FailOpen'
  return {
    place,
    limit: labelOf(config, place),
    domain: config.domain,
    service: config.backend ?? config.host,
    failureMode: failsOpen ? 'failOpen' : 'failClosed',
    timeoutMs: timeoutOf(config),
    descriptors: config.descriptors.map(({ type = 'requests', entries }) => ({
      type,
      keys: entries.map(({ key }) => key),
    })),
    checks: { ...counts.checks },
    reports: { ...counts.reports, pending: reports.pending },
    lastFailure: counts.lastFailure,
  }
}
