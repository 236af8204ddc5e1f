import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { clientNetwork } from '../../lib/address/client-network.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { needsBody } from '../../pipeline/rules.ts'
import type { LimitMeter } from '../../telemetry/metrics/limits.ts'
import { type Bucket, consume, createBucket, type Rate, refillBucket } from './bucket.ts'
import { createKeyedBuckets, type KeyedBuckets } from './keyed-buckets.ts'
import { describeRule, isAddressKey, keyVariables, type LimitRule } from './local-config.ts'

/** Compiled limit and its buckets. */
export type Limit = {
  readonly label: string
  readonly counts: 'requests' | 'tokens'
  readonly rate: Rate
  readonly meter: LimitMeter
  readonly needsBody: boolean
  /** Returns the refilled bucket of this request. */
  bucketOf(exchange: Exchange, nowMs: number): Bucket
  /** Charges a bucket found earlier, at the current rate. */
  charge(bucket: Bucket, amount: number, nowMs: number): void
  /** Expression with one bucket per value; undefined for a single bucket. */
  readonly key: CelProgram | undefined
  /** Iterates over all buckets in parts. */
  parts(): ReturnType<KeyedBuckets['parts']>
}

export type LimitOptions = {
  /** Name of the scope: part of the identity of the buckets and of the metric labels. */
  scope: string
  /** Maximum number of key values with a bucket of their own, per limit. */
  maxKeys?: number
}

/** Compiles the limits of one scope, in list order. */
export function compileLimits(
  rules: readonly LimitRule[],
  context: CompileContext,
  options: LimitOptions,
): Limit[] {
  return identified(rules).map((rule) => compileLimit(rule, context, options))
}

/**
 * Monotonic time in whole milliseconds. Integers add exactly, so that a wait for the reset always suffices.
 */
export function wholeMs(clock: Clock): number {
  return Math.floor(clock.monotonic())
}

type IdentifiedRule = LimitRule & { readonly identity: string; readonly label: string }

/**
 * Derives an identity that is independent of rates and list order. Limits that differ only in their rates are
 * numbered by size.
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
  // References the retained object itself, because unreferenced state is discarded.
  if (program === undefined) {
    const retained = retainedBucket(stateName, rate, context)
    return {
      label,
      counts,
      rate,
      meter,
      needsBody: false,
      bucketOf(_, nowMs) {
        retained.rate = rate
        refillBucket(retained.bucket, rate, nowMs)
        return retained.bucket
      },
      charge(_, amount, nowMs) {
        refillBucket(retained.bucket, retained.rate, nowMs)
        consume(retained.bucket, retained.rate, amount)
      },
      key: undefined,
      parts: () => [[{ value: undefined, bucket: retained.bucket }]],
    }
  }
  const retained = context.retained(stateName, () => ({
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
      retained.rate = rate
      const key = keyOf(program, exchange)
      return retained.buckets.find(byNetwork && key !== undefined ? clientNetwork(key) : key, rate, nowMs)
    },
    charge(bucket, amount, nowMs) {
      consume(retained.buckets.current(bucket, retained.rate, nowMs), retained.rate, amount)
    },
    key: program,
    parts: () => retained.buckets.parts(),
  }
}

/**
 * Retained bucket of a limit. `rate` is that of the last admitted request: a request that started before a
 * reload is charged at the current rate, because the old, smaller capacity would cap the usage of the larger
 * one.
 */
type RetainedBucket = { readonly bucket: Bucket; rate: Rate }

/** Refills by the previous rate up to now. Compilation alone does not activate a rate. */
function retainedBucket(stateName: string, rate: Rate, context: CompileContext): RetainedBucket {
  const nowMs = wholeMs(context.clock)
  const retained = context.retained(stateName, () => ({ bucket: createBucket(nowMs), rate }))
  refillBucket(retained.bucket, retained.rate, nowMs)
  return retained
}

/**
 * Key value of a request. Requests without a usable value share one bucket, so that a provoked evaluation
 * error neither bypasses the limit nor ends the request.
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
