import { bench, do_not_optimize, group, run } from 'mitata'
import { createLocalMemory, type Memory, regionOf } from '../../src/lib/planes/memory.ts'
import { compileLocalRateLimit } from '../../src/policies/rate-limit/local.ts'
import type { LocalRateLimitConfig } from '../../src/policies/rate-limit/local-config.ts'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'

// Cost of a limit in memory of one data plane and of several, per request without contention. `exchange` is
// the cost of the request alone, to be subtracted.

const huge = 1_000_000_000

const sharedMemory: Memory = {
  plane: 0,
  planes: 2,
  region: (_name, bytes, maxBytes = bytes) =>
    regionOf(new SharedArrayBuffer(bytes, { maxByteLength: maxBytes })),
}

const memories = { 'own memory': createLocalMemory(), 'shared memory': sharedMemory }

const cases: Record<string, LocalRateLimitConfig> = {
  'one limit': [{ requests: huge, unit: 'Seconds' }],
  'three limits': [
    { requests: huge, unit: 'Seconds' },
    { requests: huge, unit: 'Hours', burst: 1000 },
    { tokens: huge, unit: 'Minutes' },
  ],
  'one limit by key': [{ requests: huge, unit: 'Hours', key: 'apiKey.id' }],
}

function request() {
  const exchange = fixtureExchange({ headers: { host: 'gateway.test' } })
  exchange.facts.apiKey = { id: 'user-7' }
  return exchange
}

bench('exchange', () => do_not_optimize(request()))
for (const [name, config] of Object.entries(cases)) {
  group(name, () => {
    for (const [place, memory] of Object.entries(memories)) {
      const { beforeBody, afterBody } = compileLocalRateLimit(config, contextWith(memory), { scope: name })
      const policies = [beforeBody, afterBody].filter((policy) => policy !== undefined)
      bench(place, () => {
        const exchange = request()
        for (const policy of policies) {
          if (policy.onRequest?.(exchange) !== undefined) throw new Error('refused')
        }
        for (const policy of policies) policy.onEnd?.(exchange)
        return do_not_optimize(exchange)
      })
    }
  })
}

await run()

function contextWith(memory: Memory) {
  const clock = { now: () => Date.now(), monotonic: () => performance.now(), advance: () => {} }
  return { ...fixtureContext(), clock, memory }
}
