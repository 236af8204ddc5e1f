import { expect, it } from 'vitest'
import { createMetrics } from '../metrics/metrics.ts'
import { renderMetrics } from './exposition.ts'

const openMetrics = 'application/openmetrics-text;version=1.0.0'
const trace = {
  isSampled: true,
  context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' },
  clock: { now: () => 1_700_000_000_500 },
}

it('OpenMetrics has exemplars of sampled traces, canonical boundaries, and its end', async () => {
  const metrics = createMetrics()
  metrics.route('a"\\\n').done(200, 700, undefined, undefined, trace)
  metrics.route('b').done(200, 7, undefined, undefined, { ...trace, isSampled: false })
  const tokens = { inputTokens: 2_000_000, outputTokens: 1, cachedInputTokens: 0, estimated: false }
  metrics.llm('m', 'p').operation('chat').tokens(tokens, '')
  const { contentType, body } = await renderMetrics(metrics, openMetrics)
  expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
  const lines = String(body).split('\n')
  expect(lines).toContain('# TYPE tollgate_requests counter')
  expect(lines).toContain('tollgate_requests_total{route="a\\"\\\\\\n",status="200"} 1')
  const name = 'tollgate_request_duration_seconds'
  expect(lines).toContain(
    `${name}_bucket{route="a\\"\\\\\\n",le="1.0"} 1 # {trace_id="${trace.context.traceId}",span_id="${trace.context.spanId}"} 0.7 1700000000.500`,
  )
  expect(lines).toContain(`${name}_bucket{route="b",le="+Inf"} 1`)
  expect(lines).toContain(`${name}_count{route="b"} 1`)
  expect(lines.filter((line) => line.includes('trace_id'))).toHaveLength(1)
  expect(String(body)).toMatch(/gen_ai_client_token_usage_bucket\{.*le="4\.194304e\+06"\} 1\n/)
  expect(lines.slice(-2)).toEqual(['# EOF', ''])
})

it('all formats have the same metrics', async () => {
  const metrics = createMetrics()
  metrics.route('a').done(200, 700, 5)
  const namesOf = async (accept: string) => {
    const { body } = await renderMetrics(metrics, accept)
    const samples = String(body).matchAll(/^(?!#)[a-zA-Z_:0-9]+/gm)
    return [...new Set([...samples].map(([name]) => name))].sort()
  }
  expect(await namesOf(openMetrics)).toEqual(await namesOf(''))
})

it('the text format has no exemplars', async () => {
  const metrics = createMetrics()
  metrics.route('a').done(200, 700, undefined, undefined, trace)
  const { contentType, body } = await renderMetrics(metrics, 'text/plain')
  expect(contentType).toMatch(/^text\/plain/)
  expect(String(body)).not.toContain('trace_id')
})
