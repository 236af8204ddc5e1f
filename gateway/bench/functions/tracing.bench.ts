import { randomFillSync } from 'node:crypto'
import { bench, do_not_optimize, run, summary } from 'mitata'
import { systemClock } from '../../src/lib/clock.ts'
import type { Delivery } from '../../src/net/http/incoming-request.ts'
import { constantSample } from '../../src/pipeline/tracing/sampling.ts'
import { sendTraced } from '../../src/pipeline/tracing/trace.ts'
import { createTracing, type Tracing } from '../../src/pipeline/tracing/tracing.ts'
import { batchEncoder } from '../../src/telemetry/otlp/encode.ts'
import { createTraceIds } from '../../src/telemetry/tracing/trace-context.ts'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'

// Cost of a traced request with one call: start, client span, end, and its share of the export request.

const delivery: Delivery = { complete: true, status: 200, bytesSent: 1_234, firstByteAt: 12.346 }
const encode = batchEncoder({ resource: [['service.name', 'bench']], scope: { name: 'a', version: '1' } })
let waiting: Uint8Array[] = []

function tracingAt(share: number): Tracing {
  return createTracing({
    sensitive: new Set(),
    randomSample: constantSample(share, Math.random),
    clientSample: () => true,
    filter: undefined,
    added: [],
    removed: new Set(),
    exporter: {
      add(item) {
        waiting.push(item)
        if (waiting.length < 512) return
        do_not_optimize(encode(waiting))
        waiting = []
      },
    },
    ids: createTraceIds(randomFillSync),
    clock: systemClock,
  })
}

const reply = { status: 200, headers: {}, body: undefined }
const send = () => Promise.resolve(reply)

async function request(tracing: Tracing | undefined): Promise<void> {
  const exchange = fixtureExchange({ headers: { 'user-agent': 'bench/1' } })
  const outgoing = { origin: 'http://127.0.0.1:80', path: '/a', method: 'GET', headers: {}, body: undefined }
  if (tracing) exchange.trace = tracing.start(exchange)
  const { trace } = exchange
  do_not_optimize(trace === undefined ? await send() : await sendTraced(trace, outgoing, send))
  tracing?.end(exchange, delivery, systemClock.monotonic())
}

summary(() => {
  const [never, tenth, always] = [0, 0.1, 1].map(tracingAt)
  bench('without tracing', () => request(undefined))
  bench('sampling 0', () => request(never))
  bench('sampling 10 %', () => request(tenth))
  bench('sampling 100 %', () => request(always))
})

await run()
