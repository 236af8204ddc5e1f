import { describe, expect, it } from 'vitest'
import { startAuthorizationService } from '../support/authorization-service.ts'
import { startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { mockOpenAi, openAiErrors } from '../support/mock-openai.ts'
import { member, sendJson, startMockServer } from '../support/mock-server.ts'
import { otlpCollector } from '../support/otlp-collector.ts'
import { namedUpstream, routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

describe('traces of HTTP routes', () => {
  it.each(['grpc', 'http'] as const)('have a server span and a client span over %s', async (protocol) => {
    const collector = await otlpCollector()
    const upstream = await namedUpstream('one')
    const { port } = await routing([{ name: 'one', backends: [{ host: upstream.host }] }], {
      frontendPolicies: {
        tracing: {
          host: collector[protocol],
          protocol,
          randomSampling: true,
          attributes: {
            'team.name': 'request.headers["x-team"]',
            'http.status.class': 'string(response.code / 100)',
            'response.type': 'response.headers["x-kind"]',
            missing: 'jwt.sub',
          },
          remove: ['user_agent.original'],
          resources: { 'service.name': '"edge"' },
        },
      },
    })
    await fetch(`http://127.0.0.1:${port}/a/b?key=secret`, {
      headers: { 'x-team': 'blue', traceparent: parent, tracestate: 'vendor=1' },
    })
    const spans = await collector.received(2)
    const server = spans.find(({ kind }) => kind === 2)
    const client = spans.find(({ kind }) => kind === 3)
    expect(server).toMatchObject({
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      parentSpanId: '00f067aa0ba902b7',
      traceState: 'vendor=1',
      name: 'GET /',
      error: undefined,
      resource: { 'service.name': 'edge', 'service.version': expect.any(String) },
      attributes: {
        'http.request.method': 'GET',
        'url.path': '/a/b',
        'http.response.status_code': 200,
        'team.name': 'blue',
        'http.status.class': '2',
        'tollgate.route': 'one',
      },
    })
    expect(Object.keys(server?.attributes ?? {})).not.toContain('user_agent.original')
    expect(Object.keys(server?.attributes ?? {})).not.toContain('missing')
    expect(client).toMatchObject({
      parentSpanId: server?.spanId,
      traceId: server?.traceId,
      attributes: { 'http.request.method': 'GET', 'http.response.status_code': 200 },
    })
    expect(upstream.seen[0]?.headers).toMatchObject({
      traceparent: `00-${server?.traceId}-${client?.spanId}-01`,
      tracestate: 'vendor=1',
    })
    expect(collector.text()).not.toContain('secret')
  })

  it('start at the gateway by randomSampling and continue by clientSampling', async () => {
    const collector = await otlpCollector()
    const upstream = await namedUpstream('one')
    const { port, gateway } = await routing([{ name: 'one', backends: [{ host: upstream.host }] }], {
      frontendPolicies: {
        tracing: {
          host: collector.grpc,
          randomSampling: 'request.path == "/sampled"',
          clientSampling: 'request.path == "/sampled" ? 1.0 : 0.0',
        },
      },
    })
    const get = (path: string, headers = {}) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
    await get('/other')
    await get('/other', { traceparent: parent })
    await get('/sampled', { traceparent: 'garbage' })
    await get('/sampled', { traceparent: parent })
    const spans = await collector.received(4)
    expect(spans.filter(({ kind }) => kind === 2).map(({ parentSpanId }) => parentSpanId)).toEqual([
      undefined,
      '00f067aa0ba902b7',
    ])
    expect(upstream.seen.map(({ headers }) => headers.traceparent === parent)).toEqual([
      false,
      true,
      false,
      false,
    ])
    expect(upstream.seen[0]?.headers.traceparent).toBeUndefined()
    const [, , line] = await gateway.logged(4)
    expect(line).toMatchObject({ traceId: spans.find(({ kind }) => kind === 2)?.traceId })
  })

  it('report errors of upstreams, and calls of services', async () => {
    const collector = await otlpCollector()
    const service = await startAuthorizationService()
    const policies = { extAuthz: { host: service.host } }
    const { port } = await routing([{ name: 'down', policies, backends: [{ host: '127.0.0.1:1' }] }], {
      frontendPolicies: { tracing: { host: collector.grpc, randomSampling: true } },
    })
    await fetch(`http://127.0.0.1:${port}/`)
    const [server, check, client] = await collector.received(3)
    for (const span of [server, client])
      expect(span).toMatchObject({
        error: expect.any(String),
        attributes: { 'error.type': 'upstream_connect' },
      })
    expect(check).toMatchObject({
      ...{ parentSpanId: server?.spanId, kind: 3, error: undefined },
      name: 'envoy.service.auth.v3.Authorization/Check',
      attributes: { 'rpc.system': 'grpc', 'rpc.grpc.status_code': 0 },
    })
  })
})

describe('traces of LLM requests', () => {
  it('follow the GenAI conventions and have a span for each attempt', async () => {
    const collector = await otlpCollector()
    const openai = await mockOpenAi()
    const gateway = await startGateway({
      ...llmConfig({ openai }),
      config: {
        tracing: {
          otlpEndpoint: `http://${collector.http}/api/public/otel`,
          otlpProtocol: 'http',
          headers: { Authorization: 'Basic canary-collector' },
          randomSampling: 1,
          fields: { add: { 'span.name': '"openai.chat"', 'llm.total': 'llm.totalTokens' } },
        },
      },
    })
    await (await chat(gateway, { model: 'gpt-test', stream: true, temperature: 0.5 })).text()
    const spans = await collector.received(2)
    expect(collector.requests[0]).toMatchObject({
      path: '/api/public/otel/v1/traces',
      headers: { authorization: 'Basic canary-collector', 'content-type': 'application/x-protobuf' },
    })
    expect(spans.find(({ kind }) => kind === 2)).toMatchObject({
      name: 'openai.chat',
      events: ['tollgate.first_byte'],
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'gpt-test',
        'gen_ai.request.temperature': 0.5,
        'gen_ai.usage.input_tokens': 21,
        'gen_ai.usage.output_tokens': 9,
        'gen_ai.usage.cache_read.input_tokens': 5,
        'gen_ai.usage.reasoning.output_tokens': 2,
        'llm.total': 30,
      },
    })
    const client = spans.find(({ kind }) => kind === 3)
    expect(client?.attributes).toMatchObject({ 'tollgate.llm.provider': 'openai' })
    expect(openai.seen[0]?.headers['traceparent']).toContain(client?.spanId)
    openai.next(openAiErrors.failed)
    await (await chat(gateway, { model: 'gpt-test' })).text()
    await collector.received(4)
    expect(collector.spans.filter(({ error }) => error !== undefined)).toHaveLength(2)
    expect(gateway.stdout()).not.toContain('canary-collector')
  })
})

describe('traces of MCP requests', () => {
  it('have a span for each target, which receives its context', async () => {
    const collector = await otlpCollector()
    const server = await startMockServer(({ json }, response) => {
      const id = member(json, 'id')
      const result =
        member(json, 'method') === 'initialize'
          ? {
              protocolVersion: '2025-06-18',
              capabilities: { tools: {} },
              serverInfo: { name: 'a', version: '1' },
            }
          : { content: [] }
      if (id === undefined) response.writeHead(202).end()
      else if (member(json, 'params', 'name') === 'broken')
        sendJson(response, {
          status: 200,
          body: { jsonrpc: '2.0', id, error: { code: -32_000, message: 'failed' } },
        })
      else sendJson(response, { status: 200, body: { jsonrpc: '2.0', id, result } })
    })
    const gateway = await startGateway(
      {
        mcp: { targets: [{ name: 'tools', mcp: { host: server.url } }] },
        config: { tracing: { randomSampling: true } },
        frontendPolicies: {
          accessLog: {
            filter: 'mcp.methodName == "tools/call"',
            add: { given: 'mcp.tool.arguments', result: 'mcp.tool.result', failure: 'mcp.tool.error' },
          },
        },
      },
      {
        env: {
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.grpc}`,
          OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
          OTEL_SERVICE_NAME: 'edge',
        },
      },
    )
    const client = await connectClient('SDK 1', gateway.mcpUrl)
    await client.call('echo', { text: 'canary-argument' })
    const spans = await until('spans of the call', () => {
      const found = collector.spans.filter(({ name }) => name === 'tools/call echo')
      return found.length >= 2 && found
    })
    const [own, call] = [2, 3].map((kind) => spans.find((span) => span.kind === kind))
    expect(own?.resource['service.name']).toBe('edge')
    expect(collector.requests[0]?.headers['x-tenant']).toBe('a b')
    expect(own?.attributes).toMatchObject({
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'echo',
      'gen_ai.operation.name': 'execute_tool',
      'mcp.target': 'tools',
    })
    expect(call).toMatchObject({ parentSpanId: own?.spanId, attributes: { 'mcp.target': 'tools' } })
    const received = server.seen.find(({ json }) => member(json, 'method') === 'tools/call')
    expect(received?.headers['traceparent']).toBe(`00-${own?.traceId}-${call?.spanId}-01`)
    expect(member(received?.json, 'params', '_meta', 'traceparent')).toBe(received?.headers['traceparent'])
    await client.call('broken', {}).catch(() => {})
    const lines = await gateway.logged(2)
    expect(lines).toMatchObject([
      { given: { text: 'canary-argument' }, result: { content: [] }, failure: null },
      { given: {}, result: null, failure: { code: -32_000, message: 'failed' } },
    ])
    expect(collector.text()).not.toContain('canary-argument')
    expect(collector.violations).toEqual([])
  })
})
