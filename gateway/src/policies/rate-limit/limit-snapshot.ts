import { createHash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { mayBeCredential } from '../../pipeline/recording/credential-values.ts'
import { type Bucket, refillBucket, secondsToRefill, usedAt } from './bucket.ts'
import { type GlobalRateLimitConfig, timeoutOf } from './global/config.ts'
import { type GlobalLimitCounts, globalLimitState, labelOf } from './global/state.ts'
import { type KeyLimitsSnapshot, takeKeyLimitsSnapshot } from './keys/key-limit-snapshot.ts'
import { compileLimits, type Limit, wholeMs } from './limit.ts'
import { type LocalRateLimitConfig, limitRule } from './local-config.ts'

/** Limits and the scope that configures them. */
export type ScopedLimits = {
  place: string
  local: LocalRateLimitConfig
  global: GlobalRateLimitConfig | undefined
}

/** Current state of a local limit. */
export type LocalLimitSnapshot = {
  place: string
  /** Label in metrics and logs. */
  limit: string
  counts: 'requests' | 'tokens'
  /** Base and burst. */
  capacity: number
  /** Units added after each interval. */
  refill: number
  intervalSeconds: number
  /** Only of limits with `scope: shared`. Their state includes other processes, as last reported. */
  shared?: SharedStatus
  state: BucketStatus | KeyedStatus
}

export type SharedStatus = {
  /** Processes with a common count, this one included. */
  processes: number
  /** False while each process counts alone, without the database. */
  synchronized: boolean
}

export type BucketStatus = { remaining: number; resetSeconds: number }

export type KeyedStatus = {
  /** Expression with one bucket per value. */
  key: string
  /** Number of values with a bucket. */
  values: number
  /** Number of exhausted values. */
  exhausted: number
  /** Values with the least remaining, in ascending order. */
  fullest: ({ value: string } & BucketStatus)[]
}

/** Limits at a service. Its counts are not available to the gateway. */
export type GlobalLimitSnapshot = {
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

export type LimitSnapshot = {
  local: LocalLimitSnapshot[]
  global: GlobalLimitSnapshot[]
  /** Limits of virtual keys. */
  keys: KeyLimitsSnapshot
}

const fullestShown = 10

/** Limits of a gateway without a configuration. */
export const noLimits: LimitSnapshot = { local: [], global: [], keys: { used: 0, exhausted: 0, fullest: [] } }

/** Reads the current limits without a change to the counts, and yields to traffic in between. */
export async function takeLimitSnapshot(
  places: readonly ScopedLimits[],
  context: CompileContext,
): Promise<LimitSnapshot> {
  const keys = await takeKeyLimitsSnapshot(context)
  const readings: LimitSnapshot = { local: [], global: [], keys }
  for (const { place, local, global } of places) {
    for (const limit of compileLimits(local.map(limitRule), context, { scope: place })) {
      readings.local.push(await localSnapshot(limit, place, context.clock))
    }
    if (global) readings.global.push(globalSnapshot(global, place, context))
  }
  return readings
}

/**
 * Merges the snapshots of all data planes. Local limits and those of keys are the same for all; checks and
 * reports of global limits are added up, and the latest failure is that of the process.
 */
export function mergeLimitSnapshots(snapshots: readonly LimitSnapshot[]): LimitSnapshot {
  const [first, ...others] = snapshots
  if (first === undefined) return noLimits
  const global = first.global.map((snapshot) => {
    const same = others.flatMap((other) =>
      other.global.filter(({ place, limit }) => place === snapshot.place && limit === snapshot.limit),
    )
    return same.reduce(addGlobal, snapshot)
  })
  return { local: first.local, global, keys: first.keys }
}

function addGlobal(one: GlobalLimitSnapshot, other: GlobalLimitSnapshot): GlobalLimitSnapshot {
  return {
    ...one,
    checks: addCounts(one.checks, other.checks),
    reports: addCounts(one.reports, other.reports),
    lastFailure: laterOf(one.lastFailure, other.lastFailure),
  }
}

function addCounts<Counts extends Record<keyof Counts, number>>(one: Counts, other: Counts): Counts {
  const sum = { ...one }
  for (const key in sum) sum[key] = (one[key] + other[key]) as Counts[typeof key]
  return sum
}

type Failure = GlobalLimitCounts['lastFailure']

/** Times are ISO 8601 in UTC, so their order is that of the texts. */
function laterOf(one: Failure, other: Failure): Failure {
  if (one === undefined || other === undefined) return one ?? other
  return other.at > one.at ? other : one
}

async function localSnapshot(limit: Limit, place: string, clock: Clock): Promise<LocalLimitSnapshot> {
  const { label, counts, rate, key, buckets } = limit
  const shared = buckets.sharing?.()
  return {
    place,
    limit: label,
    counts,
    capacity: rate.capacity,
    refill: rate.refill,
    intervalSeconds: rate.intervalMs / 1000,
    ...(shared && { shared: { ...shared } }),
    state: key === undefined ? singleStatus(limit, clock) : await keyedStatus(limit, key, clock),
  }
}

function singleStatus(limit: Limit, clock: Clock): BucketStatus {
  const nowMs = wholeMs(clock)
  const [position = 0] = limit.buckets.positions()
  const bucket = limit.buckets.read(position)
  return bucket === undefined
    ? { remaining: limit.rate.capacity, resetSeconds: 0 }
    : bucketStatus(bucket, limit, nowMs)
}

/** Buckets read between two yields to traffic. */
const bucketsPerTurn = 5_000

async function keyedStatus(limit: Limit, key: CelProgram, clock: Clock): Promise<KeyedStatus> {
  const { rate, buckets } = limit
  const nowMs = wholeMs(clock)
  const fullest: { value: string | undefined; bucket: Bucket; remaining: number }[] = []
  let values = 0
  let exhausted = 0
  let seen = 0
  for (const position of buckets.positions()) {
    seen += 1
    if (seen % bucketsPerTurn === 0) await new Promise(setImmediate)
    const bucket = buckets.read(position)
    if (bucket === undefined) continue
    const remaining = rate.capacity - usedAt(bucket, rate, nowMs)
    if (position > 0) values += 1
    if (remaining === 0) exhausted += 1
    const least = fullest.length === fullestShown ? fullest.at(-1)?.remaining : rate.capacity
    if (least !== undefined && remaining >= least) continue
    fullest.push({ value: buckets.valueOf(position), bucket, remaining })
    fullest.sort((a, b) => a.remaining - b.remaining)
    fullest.length = Math.min(fullest.length, fullestShown)
  }
  const shown = keyDisplay(key)
  return {
    key: key.source,
    values,
    exhausted,
    fullest: fullest.map(({ value, bucket }) => ({
      value: value === undefined ? '(shared)' : shown(value),
      ...bucketStatus(bucket, limit, nowMs),
    })),
  }
}

function bucketStatus(bucket: Bucket, { rate }: Limit, nowMs: number): BucketStatus {
  const copy = { ...bucket }
  refillBucket(copy, rate, nowMs)
  return { remaining: rate.capacity - copy.used, resetSeconds: secondsToRefill(copy, rate, nowMs) }
}

/** Variables with client data, including credentials. */
const clientVariables = ['request', 'llmRequest'] as const

/** Formats key values; values that may be secrets are shown as hashes. */
function keyDisplay(key: CelProgram): (value: string) => string {
  if (!clientVariables.some((root) => key.roots.has(root)) && !mayBeCredential(key)) return (value) => value
  return (value) => `sha256:${createHash('sha256').update(value).digest('hex').slice(0, 16)}`
}

function globalSnapshot(
  config: GlobalRateLimitConfig,
  place: string,
  context: CompileContext,
): GlobalLimitSnapshot {
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
