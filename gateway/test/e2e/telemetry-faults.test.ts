import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { mockOpenAi, openAiKey } from '../support/mock-openai.ts'
import { type CollectorMode, otlpCollector } from '../support/otlp-collector.ts'
import { namedUpstream, routing, routingConfig } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

function tracing(host: string, protocol: 'grpc' | 'http') {
  return { tracing: { host, protocol, randomSampling: true } }
}

const requests = 20

describe('a faulty collector', () => {
  it.each<['grpc' | 'http', CollectorMode, string]>([
    ['grpc', 'refuses', 'refused'],
    ['http', 'refuses', 'refused'],
    ['grpc', 'rejects one', 'rejected'],
    ['http', 'rejects one', 'rejected'],
  ])('over %s that %s costs spans, not requests, and the loss is counted', async (protocol, mode, reason) => {
    const collector = await otlpCollector()
    collector.mode = mode
    const upstream = await namedUpstream('one')
    const { port, gateway } = await routing([{ name: 'one', backends: [{ host: upstream.host }] }], {
      frontendPolicies: tracing(collector[protocol], protocol),
    })
    for (let index = 0; index < requests; index++) {
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    }
    await until('dropped spans', async () => {
      const dropped = metricValue(await gateway.metrics(), 'tollgate_telemetry_dropped_total', {
        ...{ signal: 'traces', reason },
      })
      return (dropped ?? 0) > 0
    })
  })

  it.each<['grpc' | 'http', CollectorMode]>([
    ['grpc', 'flaps'],
    ['http', 'flaps'],
    ['http', 'huge'],
    ['http', 'garbage'],
  ])('over %s that %s receives every span once', async (protocol, mode) => {
    const collector = await otlpCollector()
    collector.mode = mode
    const upstream = await namedUpstream('one')
    const { port } = await routing([{ name: 'one', backends: [{ host: upstream.host }] }], {
      frontendPolicies: tracing(collector[protocol], protocol),
    })
    for (let index = 0; index < requests; index++) await fetch(`http://127.0.0.1:${port}/`)
    const spans = await collector.received(2 * requests)
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(2 * requests)
  })

  it('that hangs delays neither requests nor, beyond its limit, the end of the process', async () => {
    const collector = await otlpCollector()
    collector.mode = 'hangs'
    const upstream = await namedUpstream('one')
    const { port, gateway } = await routing([{ name: 'one', backends: [{ host: upstream.host }] }], {
      frontendPolicies: tracing(collector.http, 'http'),
    })
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    expect((await gateway.stop()).code).toBe(0)
  })
})

describe('spans', () => {
  it('of all worker threads end and arrive, also over reloads and at shutdown', async () => {
    const [one, two] = [await otlpCollector(), await otlpCollector()]
    const upstream = await namedUpstream('one')
    const routes = [{ name: 'one', backends: [{ host: upstream.host }] }]
    const more = { config: { workerThreads: 2 }, frontendPolicies: tracing(one.grpc, 'grpc') }
    const { port, gateway } = await routing(routes, more)
    const send = (count: number) =>
      Promise.all(
        Array.from({ length: count }, () =>
          fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }),
        ),
      )
    const [first] = await Promise.all([
      send(100),
      gateway.reload(routingConfig(port, routes, { ...more, frontendPolicies: tracing(two.http, 'http') })),
    ])
    const second = await send(100)
    expect([...first, ...second].every(({ status }) => status === 200)).toBe(true)
    await gateway.stop()
    const spans = [...one.spans, ...two.spans]
    expect(spans.filter(({ kind }) => kind === 2)).toHaveLength(200)
    expect(spans.filter(({ kind }) => kind === 3)).toHaveLength(200)
    const ids = new Set(spans.map(({ spanId }) => spanId))
    expect(spans.filter(({ kind, parentSpanId = '' }) => kind === 3 && !ids.has(parentSpanId))).toEqual([])
    expect([...one.violations, ...two.violations]).toEqual([])
  })

  it('and log records contain no credentials and no content', async () => {
    const collector = await otlpCollector()
    const openai = await mockOpenAi()
    openai.behaviour.content = 'canary-answer'
    const gateway = await startGateway({
      ...llmConfig({ openai }),
      frontendPolicies: {
        tracing: {
          host: collector.grpc,
          randomSampling: true,
          policies: { backendAuth: { key: 'canary-collector-key' } },
          attributes: {
            header: 'request.headers["authorization"]',
            all: 'request.headers',
            query: 'request.query',
            uri: 'request.uri',
          },
        },
        accessLog: {
          add: { cookie: 'request.headers["cookie"]', whole: 'request' },
          otlp: { host: collector.grpc },
        },
      },
    })
    for (const stream of [true, false]) {
      const answer = await chat(
        gateway,
        { model: 'gpt-test', stream, messages: [{ role: 'user', content: 'canary-prompt' }] },
        {
          path: '/v1/chat/completions?api-key=canary-query',
          headers: { cookie: 'session=canary-cookie', 'x-api-key': 'canary-header' },
        },
      )
      await answer.text()
    }
    await chat(gateway, {}, { headers: { authorization: 'Bearer canary-wrong-key' } })
    await gateway.stop()
    expect(collector.spans.length).toBeGreaterThan(4)
    expect(collector.logs).toHaveLength(3)
    const exported = collector.text() + gateway.stdout() + gateway.stderr()
    expect(exported.match(/canary-[a-z-]+/g) ?? []).toEqual([])
    for (const key of [aliceKey, openAiKey]) expect(exported).not.toContain(key)
    const traces = collector.requests.find(({ path }) => path.includes('Trace'))
    expect(traces?.headers.authorization).toBe('Bearer canary-collector-key')
  })
})
