import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { otlpCollector } from '../support/otlp-collector.ts'
import { namedUpstream, sharedRouting } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const routing = sharedRouting()

describe('frontendPolicies.accessLog', () => {
  it('adds, removes and selects by the facts at the end of a request', async () => {
    const upstream = await namedUpstream('one')
    upstream.next(
      (_, response) => response.writeHead(503, { 'x-kind': 'down' }).end(),
      (_, response) => response.end('fine'),
    )
    const { gateway, port } = await routing([{ name: 'one', backends: [{ host: upstream.host }] }], {
      config: { sensitiveHeaders: ['X-Account'] },
      frontendPolicies: {
        accessLog: {
          filter: 'response.code >= 500',
          add: {
            account: 'request.headers["x-account"]',
            agent: 'request.headers["user-agent"]',
            kind: 'response.headers["x-kind"]',
            secret: 'request.headers["authorization"]',
            failing: 'jwt.sub',
            'labels.of': '{"a": 1, "b": [true]}',
            path: '"replaced"',
          },
          remove: ['http.method', 'client'],
        },
      },
    })
    const headers = {
      'user-agent': 'test/1',
      authorization: 'Bearer canary-credential',
      'x-account': 'canary-account',
    }
    await fetch(`http://127.0.0.1:${port}/a`, { headers })
    await fetch(`http://127.0.0.1:${port}/b`, { headers })
    await gateway.reload({ gateways: { default: { port } }, routes: [] })
    await fetch(`http://127.0.0.1:${port}/c`)
    const lines = await gateway.logged(2)
    expect(lines.map(({ path }) => path)).toEqual(['replaced', '/c'])
    expect(lines[0]).toMatchObject({
      ...{ status: 503, agent: 'test/1', kind: 'down', failing: null },
      'labels.of': { a: 1, b: [true] },
      secret: expect.stringMatching(/^sha256:/),
    })
    expect(lines[0]).not.toHaveProperty('method')
    expect(lines[0]).not.toHaveProperty('client')
    expect(lines[0]).toMatchObject({ account: expect.stringMatching(/^sha256:/) })
    expect(gateway.stdout()).not.toContain('canary-')
    expect(await gateway.metrics()).toContain(
      'tollgate_telemetry_expression_failures_total{expression="frontendPolicies.accessLog.add.failing"} 1',
    )
  })

  it('exports records of LLM requests over OTLP, with their trace', async () => {
    const collector = await otlpCollector()
    const openai = await mockOpenAi()
    const gateway = await startGateway({
      ...llmConfig({ openai }),
      config: {
        histograms: 'native',
        logging: { fields: { add: { total: 'llm.totalTokens' } } },
        metrics: {
          fields: { add: { team: 'apiKey.group' } },
          remove: ['tollgate_time_to_first_byte_seconds'],
          otlp: {
            ...{ host: collector.http, protocol: 'http', interval: '1h' },
            headers: { 'x-tenant': 'metrics' },
            resources: { 'service.name': '"edge"' },
          },
        },
      },
      frontendPolicies: {
        tracing: { host: collector.grpc, randomSampling: true },
        accessLog: {
          add: { group: 'apiKey.group', asked: 'llm.prompt', answers: 'llm.completion' },
          otlp: { host: collector.http, protocol: 'http', filter: 'llm.totalTokens > 0' },
        },
      },
    })
    await (await chat(gateway, { model: 'gpt-test' })).text()
    await (await chat(gateway, { model: 'nobody' })).text()
    const [record] = await until('a record', () => collector.logs.length > 0 && collector.logs)
    const spans = await collector.received(3)
    expect(record).toMatchObject({
      body: 'request',
      traceId: spans.find(({ kind, name }) => kind === 2 && name.startsWith('chat'))?.traceId,
      attributes: { status: 200, model: 'gpt-test', totalTokens: 30, total: 30, group: 'platform' },
    })
    expect(record?.attributes['asked']).toContain('"role":"user"')
    const accepting = { headers: { accept: 'application/openmetrics-text' } }
    const openMetrics = await fetch(`http://127.0.0.1:${gateway.statsPort}/metrics`, accepting)
    const servers = spans.filter(({ kind }) => kind === 2).map(({ spanId }) => spanId)
    const found = / # \{trace_id="\w+",span_id="(\w+)"\} /.exec(await openMetrics.text())
    expect(servers).toContain(found?.[1])
    const metrics = await gateway.metrics()
    expect(metrics).not.toContain('trace_id')
    expect(metrics).toMatch(/tollgate_requests_total\{route="llm",status="200",team="platform"\} 1/)
    expect(metrics).not.toContain('tollgate_time_to_first_byte_seconds')
    const lines = await gateway.logged(2)
    expect(lines.map(({ total }) => total)).toEqual([30, null])
    expect(lines.map(({ answers }) => answers)).toEqual([[expect.stringMatching(/./)], []])
    await gateway.stop()
    expect([collector.logs.length, collector.violations]).toEqual([1, []])
    // The last values are exported at the end of the process.
    const usage = collector.metrics.find(({ name }) => name === 'gen_ai.client.token.usage')
    expect(usage?.points[0]).toMatchObject({
      count: 1n,
      attributes: { 'gen_ai.request.model': 'gpt-*', key_group: 'platform', team: 'platform' },
    })
    const durations = collector.metrics.find(({ name }) => name === 'tollgate_request_duration_seconds')
    const exemplars = (durations?.points[0]?.['exemplars'] ?? []) as { spanId: Buffer }[]
    expect(servers).toContain(exemplars[0]?.spanId.toString('hex'))
    expect(durations?.kind).toBe('exponentialHistogram')
    expect(durations?.points[0]?.['positive']).toHaveProperty('bucketCounts')
    const sent = collector.requests.find(({ path }) => path === '/v1/metrics')
    expect(sent?.headers).toMatchObject({ 'x-tenant': 'metrics' })
  })
})
