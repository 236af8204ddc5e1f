import { bench, do_not_optimize, group, run } from 'mitata'
import { createLocalMemory, type Memory, maxBytesOf, regionOf } from '../../src/lib/planes/memory.ts'
import type { Policy } from '../../src/pipeline/policy.ts'
import { type ApiKeyConfig, compileApiKey } from '../../src/policies/api-key/api-key.ts'
import { compileAuthorization } from '../../src/policies/authorization.ts'
import { createKeyedBuckets } from '../../src/policies/rate-limit/keyed-buckets.ts'
import { compileLocalRateLimit } from '../../src/policies/rate-limit/local.ts'
import type { LocalRateLimitConfig } from '../../src/policies/rate-limit/local-config.ts'
import { type FixtureContext, fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'

// Cost per request of the policies of an LLM route:
// node --expose-gc gateway/bench/functions/policies.bench.ts

const keyCount = 100_000
const liveValues = 1_000_000
const huge = 1_000_000_000

const context: FixtureContext = {
  ...fixtureContext(),
  clock: { now: () => Date.now(), monotonic: () => performance.now(), advance: () => {} },
  metrics: { ...fixtureContext().metrics, limit: countingMeter },
}

function countingMeter() {
  const counts = { allowed: 0, refused: 0 }
  return {
    allowed() {
      counts.allowed += 1
    },
    refused() {
      counts.refused += 1
    },
  }
}

/** One request through the policies; the exchange and its headers are made anew, as the edge does. */
function passes(policies: readonly Policy[], headers: () => Record<string, string>, id?: string) {
  const exchange = fixtureExchange({ headers: headers() })
  if (id !== undefined) exchange.facts.apiKey = { id }
  const reply = { status: 200, headers: {}, body: undefined }
  for (const policy of policies) {
    if (policy.onRequest?.(exchange) !== undefined) throw new Error('refused')
  }
  for (const policy of policies) policy.onReply?.(exchange, reply)
  for (const policy of policies) policy.onEnd?.(exchange)
  return exchange
}

/** Memory as of several data planes, with locks. */
const sharedMemory: Memory = {
  plane: 0,
  planes: 2,
  region: (_name, bytes, maxBytes) => regionOf(new SharedArrayBuffer(bytes, maxBytesOf(bytes, maxBytes))),
}

function limitsOf(config: LocalRateLimitConfig, place: string, memory = context.memory): Policy[] {
  const { beforeBody, afterBody } = compileLocalRateLimit(config, { ...context, memory }, { scope: place })
  return [beforeBody, afterBody].filter((policy) => policy !== undefined)
}

function heapBytes(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

function spent<T>(work: () => T): { result: T; ms: number; bytes: number } {
  const before = heapBytes()
  const startedAt = performance.now()
  const result = work()
  const ms = performance.now() - startedAt
  return { result, ms, bytes: heapBytes() - before }
}

const clientHeaders = () => ({ host: 'gateway.test', accept: '*/*', 'content-type': 'application/json' })

const keys: ApiKeyConfig['keys'] = Array.from({ length: keyCount }, (_, index) => ({
  key: `tg-${index.toString().padStart(32, '0')}`,
  metadata: { name: `key ${index}`, group: `team ${index % 20}` },
}))
const first = spent(() => compileApiKey({ keys }, context, 'bench'))
const reload = spent(() => compileApiKey({ keys: [...keys.slice(1), { key: 'new' }] }, context, 'bench'))
console.log(
  `${keyCount} keys: ${(first.bytes / keyCount).toFixed(0)} bytes and ${((first.ms * 1000) / keyCount).toFixed(1)} us each`,
)
console.log(`a reload that changes one of them: ${reload.ms.toFixed(0)} ms`)

const values = Array.from({ length: liveValues }, (_, index) => `user-${index}`)
const rssBefore = process.memoryUsage.rss()
const filled = spent(() => {
  const buckets = createKeyedBuckets(createLocalMemory(), 'filled', liveValues)
  const rate = { capacity: huge, refill: 1, intervalMs: 3_600_000, sinceMs: 0 }
  let longestMs = 0
  for (const value of values) {
    const startedAt = performance.now()
    buckets.select(value, rate)
    buckets.lock(rate, 0)
    buckets.bucket.used = 5
    buckets.unlock()
    buckets.settle(0)
    longestMs = Math.max(longestMs, performance.now() - startedAt)
  }
  return { buckets, longestMs }
})
console.log(
  `${liveValues} values of a key: ${((process.memoryUsage.rss() - rssBefore) / liveValues).toFixed(0)} bytes and ${((filled.ms * 1000) / liveValues).toFixed(2)} us each to begin, longest pause ${filled.result.longestMs.toFixed(0)} ms`,
)

const keyedConfig: LocalRateLimitConfig = [{ tokens: huge, unit: 'Hours', key: 'apiKey.id' }]
const keyed = limitsOf(keyedConfig, 'keyed')
const keyedShared = limitsOf(keyedConfig, 'keyed, shared', sharedMemory)
for (const id of values) {
  for (const policies of [keyed, keyedShared]) {
    const exchange = passes([], clientHeaders, id)
    for (const policy of policies) policy.onRequest?.(exchange)
    exchange.limits?.reservations[0]?.charge(1)
  }
}

const known = [first.result]
const threeConfig: LocalRateLimitConfig = [
  { requests: huge, unit: 'Seconds' },
  { requests: huge, unit: 'Minutes' },
  { tokens: huge, unit: 'Hours' },
]
const three = limitsOf(threeConfig, 'three')
const threeShared = limitsOf(threeConfig, 'three, shared', sharedMemory)
const { beforeBody } = compileAuthorization({ rules: ['request.path.startsWith("/v1/")'] }, context, {
  variables: new Set(['request']),
  scope: 'llm',
})
const rule = beforeBody === undefined ? [] : [beforeBody]
let turn = 0

group('per request', () => {
  bench('nothing (the exchange itself)', () => do_not_optimize(passes([], clientHeaders)))
  bench(`virtual key among ${keyCount}`, () => {
    turn = (turn + 7919) % keyCount
    const authorization = `Bearer ${keys[turn]?.key}`
    do_not_optimize(passes(known, () => ({ ...clientHeaders(), authorization })))
  })
  bench('one authorization rule', () => do_not_optimize(passes(rule, clientHeaders)))
  bench('three limits', () => do_not_optimize(passes(three, clientHeaders)))
  bench('three limits, shared', () => do_not_optimize(passes(threeShared, clientHeaders)))
  bench(`a limit with ${liveValues} live values`, () => {
    turn = (turn + 7919) % liveValues
    do_not_optimize(passes(keyed, clientHeaders, values[turn]))
  })
  bench(`a shared limit with ${liveValues} live values`, () => {
    turn = (turn + 7919) % liveValues
    do_not_optimize(passes(keyedShared, clientHeaders, values[turn]))
  })
})

await run()
