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
import type { ConfiguredRate } from './bucket.ts'
import type { Buckets } from './buckets.ts'
import { createKeyedBuckets } from './keyed-buckets.ts'
import { describeRule, isAddressKey, keyVariables, type LimitRule } from './local-config.ts'
import { createSingleBucket } from './single-bucket.ts'

/** Compiled limit and its buckets. */
export type Limit = {
  readonly label: string
  readonly counts: 'requests' | 'tokens'
  readonly rate: ConfiguredRate
  readonly meter: LimitMeter
  readonly needsBody: boolean
  /** Name of the memory of the buckets. */
  readonly memory: string
  readonly buckets: Buckets
  /** Selects the bucket of a request. */
  select(exchange: Exchange): void
  /** Expression with one bucket per value; undefined for a single bucket. */
  readonly key: CelProgram | undefined
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
    const { counts, key, name, rate, appliesTo } = rule
    if (name !== undefined)
      return { ...rule, identity: JSON.stringify([counts, key ?? null, name]), label: name }
    const alike = rules.filter(
      (other) =>
        other.name === undefined &&
        other.id === rule.id &&
        other.appliesTo === appliesTo &&
        other.counts === counts &&
        other.key === key &&
        other.rate.intervalMs === rate.intervalMs,
    )
    const position = alike.toSorted((a, b) => a.rate.capacity - b.rate.capacity).indexOf(rule) + 1
    const label = position === 1 ? describeRule(rule) : `${describeRule(rule)} (${position})`
    return { ...rule, identity: identityOf(rule, position), label }
  })
}

function identityOf({ counts, key, rate, appliesTo }: LimitRule, position: number): string {
  const parts = [counts, key ?? null, rate.intervalMs, position]
  return JSON.stringify(appliesTo === undefined ? parts : [...parts, appliesTo])
}

/** Limits with the same `id` share their memory. The parts that determine its layout are in the name. */
function memoryOf({ id, identity, counts, key }: IdentifiedRule, { scope }: LimitOptions): string {
  if (id === undefined) return `rate-limit/${scope}/${identity}`
  return `rate-limit shared/${JSON.stringify([id, counts, key ?? null])}`
}

function compileLimit(rule: IdentifiedRule, context: CompileContext, options: LimitOptions): Limit {
  const label = `${options.scope}: ${rule.label}`
  const memory = memoryOf(rule, options)
  const key = rule.key === undefined ? undefined : compileCheckedCel(rule.key, keyVariables)
  const sinceMs = wholeMs(context.clock)
  const rate = { ...rule.rate, sinceMs }
  const fields = { label, counts: rule.counts, rate, meter: context.metrics.limit(label), memory }
  if (key === undefined) {
    const buckets = context.retained(memory, () => createSingleBucket(context.memory, memory, sinceMs))
    return { ...fields, needsBody: false, buckets, select() {}, key }
  }
  const byNetwork = rule.key !== undefined && isAddressKey(rule.key)
  const maxKeys = options.maxKeys ?? 1_000_000
  const buckets = context.retained(memory, () => createKeyedBuckets(context.memory, memory, maxKeys))
  return {
    ...fields,
    needsBody: needsBody(key),
    buckets,
    select(exchange) {
      const value = keyOf(key, exchange)
      buckets.select(byNetwork && value !== undefined ? clientNetwork(value) : value, rate)
    },
    key,
  }
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
