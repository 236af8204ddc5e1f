import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedKey } from '../../cel/checked.ts'
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
import { leasesOf } from './leases/leases.ts'
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
  /** Whether `select` is called for each request. */
  readonly selects: boolean
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
        other.isShared === rule.isShared &&
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
function memoryOf({ id, identity, counts, key, isShared }: IdentifiedRule, { scope }: LimitOptions): string {
  const prefix = isShared ? 'leased ' : ''
  if (id === undefined) return `${prefix}rate-limit/${scope}/${identity}`
  return `${prefix}rate-limit shared/${JSON.stringify([id, counts, key ?? null])}`
}

function compileLimit(rule: IdentifiedRule, context: CompileContext, options: LimitOptions): Limit {
  const label = `${options.scope}: ${rule.label}`
  const memory = memoryOf(rule, options)
  const key = rule.key === undefined ? undefined : compileCheckedKey(rule.key, keyVariables)
  const sinceMs = wholeMs(context.clock)
  const rate = { ...rule.rate, sinceMs }
  const { counts, isShared } = rule
  const fields = { label, counts, rate, meter: context.metrics.limit(label), memory, key }
  const maxKeys = options.maxKeys ?? 1_000_000
  const create = () => {
    if (isShared)
      return createKeyedBuckets(context.memory, memory, maxKeys, leasesOf(memory, counts, context))
    return key === undefined
      ? createSingleBucket(context.memory, memory, sinceMs)
      : createKeyedBuckets(context.memory, memory, maxKeys)
  }
  const buckets = context.retained(memory, create)
  if (key === undefined) {
    const select = () => buckets.select(undefined, rate)
    return { ...fields, needsBody: false, buckets, select, selects: isShared }
  }
  const byNetwork = rule.key !== undefined && isAddressKey(rule.key)
  return {
    ...fields,
    needsBody: needsBody(key),
    buckets,
    select(exchange) {
      const value = keyOf(key, exchange)
      buckets.select(byNetwork && value !== undefined ? clientNetwork(value) : value, rate)
    },
    selects: true,
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
