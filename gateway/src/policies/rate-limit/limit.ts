import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { clientNetwork } from '../../lib/address/client-network.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { needsBody } from '../../pipeline/rules.ts'
import type { LimitMeter } from '../../telemetry/metrics.ts'
import { type Bucket, consume, createBucket, type Rate, refillBucket } from './bucket.ts'
import { createKeyedBuckets, type KeyedBuckets } from './keyed-buckets.ts'
import { describeRule, isAddressKey, keyVariables, type LimitRule } from './local-config.ts'

/** One limit, with its count. */
export type Limit = {
  readonly label: string
  readonly counts: 'requests' | 'tokens'
  readonly rate: Rate
  readonly meter: LimitMeter
  readonly needsBody: boolean
  /** The bucket that counts this request, refilled. */
  bucketOf(exchange: Exchange, nowMs: number): Bucket
  /** Counts later what belongs to a bucket found before, by the numbers that hold then. */
  charge(bucket: Bucket, amount: number, nowMs: number): void
  /** The expression whose values are counted apart; undefined where all count together. */
  readonly key: CelProgram | undefined
  /** Every bucket there is, a part at a time. */
  parts(): ReturnType<KeyedBuckets['parts']>
}

export type LimitOptions = {
  /** Where the limits are configured: part of the identity of their counts, and of their names in metrics. */
  scope: string
  /** Most values of one limit's key that are counted apart. */
  maxKeys?: number
}

/** The limits of one place, in the order of the list. */
export function compileLimits(
  rules: readonly LimitRule[],
  context: CompileContext,
  options: LimitOptions,
): Limit[] {
  return identified(rules).map((rule) => compileLimit(rule, context, options))
}

/** Whole numbers make sums of times exact, so that waiting for the reset is always enough. */
export function wholeMs(clock: Clock): number {
  return Math.floor(clock.monotonic())
}

type IdentifiedRule = LimitRule & { readonly identity: string; readonly label: string }

/**
 * Names every limit such that neither new numbers nor a new order of the list changes the name. Limits that only their
 * numbers tell apart are told apart by size.
 */
function identified(rules: readonly LimitRule[]): IdentifiedRule[] {
  return rules.map((rule) => {
    const { counts, key, name, rate } = rule
    if (name !== undefined)
      return { ...rule, identity: JSON.stringify([counts, key ?? null, name]), label: name }
    const alike = rules.filter(
      (other) =>
        other.name === undefined &&
        other.counts === counts &&
        other.key === key &&
        other.rate.intervalMs === rate.intervalMs,
    )
    const position = alike.toSorted((a, b) => a.rate.capacity - b.rate.capacity).indexOf(rule) + 1
    const label = position === 1 ? describeRule(rule) : `${describeRule(rule)} (${position})`
    return { ...rule, identity: JSON.stringify([counts, key ?? null, rate.intervalMs, position]), label }
  })
}

function compileLimit(rule: IdentifiedRule, context: CompileContext, options: LimitOptions): Limit {
  const label = `${options.scope}: ${rule.label}`
  const stateName = `rate-limit/${options.scope}/${rule.identity}`
  const program = rule.key === undefined ? undefined : compileCheckedCel(rule.key, keyVariables)
  const byNetwork = rule.key !== undefined && isAddressKey(rule.key)
  const { counts, rate } = rule
  const meter = context.metrics.limit(label)
  // Held as it is kept, because it is forgotten once nobody holds it.
  if (program === undefined) {
    const kept = retainedBucket(stateName, rate, context)
    return {
      label,
      counts,
      rate,
      meter,
      needsBody: false,
      bucketOf(_, nowMs) {
        kept.rate = rate
        refillBucket(kept.bucket, rate, nowMs)
        return kept.bucket
      },
      charge(_, amount, nowMs) {
        refillBucket(kept.bucket, kept.rate, nowMs)
        consume(kept.bucket, kept.rate, amount)
      },
      key: undefined,
      parts: () => [[{ value: undefined, bucket: kept.bucket }]],
    }
  }
  const kept = context.retained(stateName, () => ({
    buckets: createKeyedBuckets(options.maxKeys ?? 1_000_000),
    rate,
  }))
  return {
    label,
    counts,
    rate,
    meter,
    needsBody: needsBody(program),
    bucketOf(exchange, nowMs) {
      kept.rate = rate
      const key = keyOf(program, exchange)
      return kept.buckets.find(byNetwork && key !== undefined ? clientNetwork(key) : key, rate, nowMs)
    },
    charge(bucket, amount, nowMs) {
      consume(kept.buckets.current(bucket, kept.rate, nowMs), kept.rate, amount)
    },
    key: program,
    parts: () => kept.buckets.parts(),
  }
}

/**
 * What a place has counted. `rate` is that of the last request that was admitted: a request that began before a reload is
 * charged by the numbers that hold now, or its old, smaller bucket would cut off what was used of the larger one.
 */
type RetainedBucket = { readonly bucket: Bucket; rate: Rate }

/** Time that passed before the numbers changed counts by what they were. Compiling alone puts no numbers in force. */
function retainedBucket(stateName: string, rate: Rate, context: CompileContext): RetainedBucket {
  const nowMs = wholeMs(context.clock)
  const kept = context.retained(stateName, () => ({ bucket: createBucket(nowMs), rate }))
  refillBucket(kept.bucket, kept.rate, nowMs)
  return kept
}

/**
 * The value to count for. Where the expression fails or yields nothing to tell requests apart by, they share one
 * bucket: provoking that must not be a way around the limit, nor end the request.
 */
function keyOf(program: CelProgram, exchange: Exchange): string | undefined {
  try {
    const value = program.evaluate(exchange.facts)
    if (typeof value === 'string') return value
    if (value instanceof Uint8Array) return hash('sha256', value, 'hex')
    return value === null || typeof value === 'object' ? undefined : String(value)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}
