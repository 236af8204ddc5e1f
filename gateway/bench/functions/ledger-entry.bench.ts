import { randomUUID } from 'node:crypto'
import { bench, do_not_optimize, run, summary } from 'mitata'
import { encodeEntry } from '../../src/ledger/wire.ts'
import type { Delivery } from '../../src/net/http/incoming-request.ts'
import type { Exchange } from '../../src/pipeline/exchange.ts'
import { ledgerEntry } from '../../src/pipeline/recording/ledger-entry.ts'
import {
  createRecording,
  recordAttempt,
  recordGuard,
  recordLimit,
} from '../../src/pipeline/recording/recording.ts'
import { createRequestIds } from '../../src/pipeline/recording/request-id.ts'
import { compileStandardAttributes } from '../../src/pipeline/recording/standard-attributes.ts'
import { fixtureExchange, fixtureUsage } from '../../test/fixtures/pipeline.ts'

// Cost of the ledger per request on the thread of traffic: id, entry, and its line for the writer.

const delivery: Delivery = { complete: true, status: 200, bytesSent: 1_234, firstByteAt: 12.346 }
const attributes = compileStandardAttributes({})
const configured = compileStandardAttributes({ user: 'apiKey.name', group: 'request.headers["x-team"]' })
const clock = { now: () => 1_700_000_000_000, monotonic: () => 5 }
const inputs = { endedAt: 20.123, completedAt: 1_700_000_000_000, attributes }

function completion(): Exchange {
  const headers = {
    'user-agent': 'OpenAI/Python 2.1.0',
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    'x-team': 'platform',
  }
  const exchange = fixtureExchange(
    { headers, arrivedAt: 1_700_000_000_000 },
    {
      apiKey: { id: 'key-alice', name: 'alice', group: 'platform' },
      llm: {
        operation: 'chat',
        api: 'chat_completions',
        requestModel: 'gpt-5-mini',
        configuredModel: 'gpt-5-mini',
        provider: 'openai',
        streaming: true,
        responseModel: 'gpt-5-mini-2026-01-01',
        cost: 0.001_425,
        costPicodollars: 1_425_000_000,
        costStatus: 'exact',
      },
      usage: fixtureUsage(321),
    },
  )
  return { ...exchange, requestId: randomUUID() }
}

/** An exchange as recorded: one attempt, two limits, one guard. */
function recorded(): Exchange {
  const exchange = completion()
  exchange.recording = createRecording('errors')
  recordAttempt(exchange.recording, { target: 'gpt-5-mini', provider: 'openai', model: 'gpt-5-mini' }, clock)
  const status = { limit: 100, remaining: 7, resetSeconds: 12 }
  recordLimit(
    exchange.recording,
    { limit: 'llm: requests per minute', unit: 'requests', refused: false },
    status,
  )
  recordLimit(exchange.recording, { limit: 'llm: tokens per minute', unit: 'tokens', refused: false }, status)
  const decision = {
    guard: 'pii',
    phase: 'request',
    outcome: 'allow',
    reason: undefined,
    durationMs: 0.2,
  } as const
  recordGuard(exchange.recording, decision)
  return exchange
}

const plain = completion()
const full = recorded()
const nextId = createRequestIds(Date.now, randomUUID)

summary(() => {
  bench('request id', () => do_not_optimize(nextId()))
  bench('random UUID', () => do_not_optimize(randomUUID()))
})
summary(() => {
  bench('entry', () => do_not_optimize(ledgerEntry(plain, delivery, inputs)))
  bench('entry with configured attributes', () =>
    do_not_optimize(ledgerEntry(plain, delivery, { ...inputs, attributes: configured })),
  )
  bench('entry and line', () => do_not_optimize(encodeEntry(ledgerEntry(plain, delivery, inputs))))
  bench('entry and line, with limits and guards', () =>
    do_not_optimize(encodeEntry(ledgerEntry(full, delivery, inputs))),
  )
})

await run()
