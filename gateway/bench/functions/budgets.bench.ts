import { bench, do_not_optimize, group, run } from 'mitata'
import { createLocalMemory, type Memory, regionOf } from '../../src/lib/planes/memory.ts'
import type { Exchange } from '../../src/pipeline/exchange.ts'
import { compileBudgets } from '../../src/policies/budgets/budgets.ts'
import type { BudgetsConfig } from '../../src/policies/budgets/config.ts'
import { fixtureContext, fixtureExchange, fixtureUsage } from '../../test/fixtures/pipeline.ts'

// Cost of budgets in memory of one data plane and of several, per request without contention: admission,
// warning header and settlement. `exchange` is the cost of the request alone, to be subtracted.

const sharedMemory: Memory = {
  plane: 0,
  planes: 2,
  region: (_name, bytes, maxBytes = bytes) =>
    regionOf(new SharedArrayBuffer(bytes, { maxByteLength: maxBytes })),
}

const memories = { 'own memory': createLocalMemory(), 'shared memory': sharedMemory }
const usd = { usd: 1_000_000 }

const cases: Record<string, BudgetsConfig> = {
  none: [],
  'one budget': [{ name: 'all', limit: usd, window: 'month', timeZone: 'Europe/Berlin' }],
  'two budgets by key': [
    {
      name: 'team',
      limit: usd,
      window: 'month',
      timeZone: 'Europe/Berlin',
      key: 'apiKey.group',
      warnAt: 0.8,
    },
    { name: 'user', limit: { tokens: 1_000_000_000_000 }, window: '24h', key: 'apiKey.user' },
  ],
}

const operation = { operation: 'chat', api: 'chat_completions' } as const
const estimate = { tokens: 1_100, picodollars: 3_000_000_000 }
const usage = fixtureUsage(300)

function request(): Exchange {
  const exchange = fixtureExchange({}, { apiKey: { id: 'key-7', user: 'ada', group: 'research' }, usage })
  exchange.facts.llm = {
    ...{
      ...operation,
      requestModel: 'gpt-5',
      configuredModel: 'gpt-5',
      provider: 'openai',
      streaming: false,
    },
    costPicodollars: 900_000_000,
    costStatus: 'exact',
  }
  exchange.llm = { operation, estimate: () => estimate, message: undefined }
  return exchange
}

bench('exchange', () => do_not_optimize(request()))
for (const [name, config] of Object.entries(cases)) {
  group(name, () => {
    for (const [place, memory] of Object.entries(memories)) {
      const clock = { now: () => Date.now(), monotonic: () => performance.now(), advance: () => {} }
      const policy = compileBudgets([{ scope: name, budgets: config }], {
        ...fixtureContext(),
        clock,
        memory,
      })
      bench(place, () => {
        const exchange = request()
        if (policy.onRequest?.(exchange) !== undefined) throw new Error('refused')
        policy.onReply?.(exchange, { status: 200, headers: {}, body: undefined })
        policy.onEnd?.(exchange)
        return do_not_optimize(exchange)
      })
    }
  })
}

await run()
