import { describe, expect, it } from 'vitest'
import { decodeMetrics } from '../../../test/support/otlp-decoder.ts'
import type { CollectedFamily } from '../metrics/families.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { batchEncoder } from './encode.ts'
import { encodeMetric } from './encode-metric.ts'

const times = { startedAt: 1_700_000_000_000, at: 1_700_000_060_000 }
const encode = batchEncoder({ resource: [], scope: { name: 'tollgate', version: '1' } })

function decoded(families: readonly CollectedFamily[]) {
  return decodeMetrics(Buffer.from(encode(families.flatMap((family) => encodeMetric(family, times)))))
}

describe('metrics in OTLP', () => {
  it('are cumulative sums, gauges and histograms with the names of the conventions', async () => {
    const metrics = createMetrics()
    const llm = metrics.llm('gpt', 'openai')
    llm
      .operation('chat')
      .tokens({ inputTokens: 3, outputTokens: 900, cachedInputTokens: 0, estimated: false }, '')
    llm.cost(1_500_000_000_000n, 'team')
    metrics.route('a').done(200, 70, undefined)
    metrics.admission('connections').changed(2)
    const found = decoded(await metrics.collect())
    const named = (name: string) => found.find((metric) => metric.name === name)
    expect(named('tollgate_requests_total')).toMatchObject({
      kind: 'sum',
      points: [{ asDouble: 1, attributes: { route: 'a', status: '200' } }],
    })
    expect(named('tollgate_llm_cost_usd_total')?.points[0]).toMatchObject({ asDouble: 1.5 })
    expect(named('tollgate_admission_in_use')).toMatchObject({ kind: 'gauge', points: [{ asDouble: 2 }] })
    const tokens = named('gen_ai.client.token.usage')
    expect(tokens?.kind).toBe('histogram')
    expect(tokens?.points[1]).toMatchObject({
      sum: 900,
      count: 1n,
      attributes: { 'gen_ai.token.type': 'output', 'gen_ai.operation.name': 'chat' },
    })
    expect(named('tollgate_process_resident_memory_bytes')?.kind).toBe('gauge')
  })

  it('have exemplars of sampled traces', async () => {
    const metrics = createMetrics()
    const trace = {
      isSampled: true,
      context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' },
      clock: { now: () => times.at - 1 },
    }
    metrics.route('a').done(200, 70, undefined, undefined, trace)
    metrics.route('a').done(200, 7_000, undefined)
    const found = decoded(await metrics.collect())
    const duration = found.find(({ name }) => name === 'tollgate_request_duration_seconds')
    expect(duration?.points[0]?.['exemplars']).toEqual([
      {
        timeUnixNano: BigInt(times.at - 1) * 1_000_000n,
        asDouble: 0.07,
        spanId: Buffer.from(trace.context.spanId, 'hex'),
        traceId: Buffer.from(trace.context.traceId, 'hex'),
      },
    ])
  })

  it('are exponential histograms if native ones are configured', async () => {
    const metrics = createMetrics()
    metrics.expose({ removed: new Set(), labels: [], histograms: 'native' })
    for (const durationMs of [700, 700, 760, 625, 0]) metrics.route('a').done(200, durationMs, undefined)
    const found = decoded(await metrics.collect())
    const duration = found.find(({ name }) => name === 'tollgate_request_duration_seconds')
    expect(duration).toMatchObject({
      kind: 'exponentialHistogram',
      points: [
        {
          ...{ count: 5n, sum: 2.785, scale: 3, zeroCount: 1n, attributes: { route: 'a' } },
          // From 2 ** (-6 / 8) = 0.59.
          positive: { offset: -6, bucketCounts: Buffer.from([1, 2, 1]) },
        },
      ],
    })
  })

  it('are split into messages of bounded size', () => {
    const series = Array.from({ length: 450 }, (_, index) => ({ labels: [`r${index}`], values: [index] }))
    const family = {
      name: 'x_total',
      help: '',
      type: 'counter',
      labels: ['route'],
      boundaries: [],
      series,
    } as const
    expect(encodeMetric(family, times)).toHaveLength(3)
    expect(decoded([family]).flatMap(({ points }) => points)).toHaveLength(450)
    expect(encodeMetric({ ...family, series: [] }, times)).toEqual([])
  })
})
