import { randomUUID } from 'node:crypto'
import { bench, do_not_optimize, run, summary } from 'mitata'
import type { Delivery } from '../../src/net/http/incoming-request.ts'
import { accessLine } from '../../src/pipeline/access-log.ts'
import { createRequestIds } from '../../src/pipeline/recording/request-id.ts'
import { fixtureExchange, fixtureUsage } from '../../test/fixtures/pipeline.ts'

// Cost of the access log line per request.

const delivery: Delivery = { complete: true, status: 200, bytesSent: 1_234, firstByteAt: 12.346 }
const time = '2026-01-01T00:00:00.000Z'

const nextId = createRequestIds(Date.now, randomUUID)
const plain = fixtureExchange()
const completion = fixtureExchange(
  {},
  {
    apiKey: { id: 'key-alice' },
    llm: {
      operation: 'chat',
      api: 'chat_completions',
      requestModel: 'gpt-5-mini',
      configuredModel: 'gpt-5-mini',
      provider: 'openai',
      streaming: false,
      cost: 0.001_425,
      costStatus: 'exact',
    },
    usage: fixtureUsage(321),
  },
)
const refused = fixtureExchange()
refused.log.refusedBy = 'rate-limit: llm: requests per minute'
refused.log.failure = new TypeError('boom')

summary(() => {
  bench('plain request', () => do_not_optimize(accessLine(plain, delivery, time, 20.123)))
  bench('completion', () => {
    completion.requestId = nextId()
    return do_not_optimize(accessLine(completion, delivery, time, 20.123))
  })
  bench('failed request', () => do_not_optimize(accessLine(refused, delivery, time, 20.123)))
})

await run()
