import { expect, it } from 'vitest'
import { call } from '../support/http-call.ts'
import { startMcpGateway } from '../support/mcp-fixtures.ts'
import { openSession } from '../support/mcp-raw.ts'
import { member, sendJson, startMockServer } from '../support/mock-server.ts'
import { namedUpstream, routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const unhealthyExpression = 'response.code == 429'
const health = { unhealthyExpression, eviction: { consecutiveFailures: 2, duration: '60s' } }

it('ejects an HTTP backend whose responses match the expression', async () => {
  const limited = await startMockServer((_, response) => response.writeHead(429).end('limited'))
  const working = await namedUpstream('working')
  const backends = [
    { host: `127.0.0.1:${limited.port}`, weight: 1000, policies: { health } },
    { host: working.host, weight: 1, policies: { health } },
  ]
  const { gateway, port } = await routing([{ backends }])
  const statuses: number[] = []
  for (let count = 0; count < 20; count += 1) statuses.push((await call(port, '/')).status)
  expect(limited.seen).toHaveLength(2)
  expect(statuses.slice(-10)).toEqual(Array.from({ length: 10 }, () => 200))
  const ejections = `tollgate_destination_ejections_total{destination="127.0.0.1:${limited.port}"} 1`
  expect(await gateway.metrics()).toContain(ejections)
})

it('ejects a model whose responses match the expression, until its duration ends', async () => {
  const answers = { limited: 0, working: 0 }
  const limited = await startMockServer((_, response) => {
    answers.limited += 1
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '1' }).end('{}')
  })
  const working = await startMockServer((_, response) => {
    answers.working += 1
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'hi' } }], usage: {} }))
  })
  const model = (name: string, port: number, more: object = {}) => ({
    ...{ name, provider: 'openai', params: { apiKey: 'key', baseUrl: `http://127.0.0.1:${port}/v1` } },
    ...more,
  })
  const targets = ['limited', 'working'].map((each, priority) => ({ model: each, priority }))
  const { gateway } = await routing([], {
    llm: {
      models: [model('limited', limited.port, { health }), model('working', working.port)],
      virtualModels: [{ name: 'sure', routing: { failover: { targets } } }],
    },
  })
  const body = JSON.stringify({ model: 'sure', messages: [{ role: 'user', content: 'hello' }] })
  const headers = { 'content-type': 'application/json' }
  for (let count = 0; count < 6; count += 1) {
    const reply = await call(gateway.port, '/v1/chat/completions', { method: 'POST', headers, body })
    expect(reply.status).toBe(200)
  }
  expect(answers).toEqual({ limited: 2, working: 6 })
})

/** An MCP server whose calls have this status. */
function startToolServer(status: () => number) {
  return startMockServer(({ json }, response) => {
    const id = member(json, 'id')
    const method = member(json, 'method')
    const introduction = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'a', version: '1' },
    }
    const results = {
      initialize: introduction,
      'tools/list': { tools: [{ name: 'search', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [] },
    }
    const result = Object.entries(results).find(([name]) => name === method)?.[1]
    if (id === undefined || result === undefined) response.writeHead(202).end()
    else if (method === 'tools/call' && status() !== 200) response.writeHead(status()).end('failed')
    else sendJson(response, { status: 200, body: { jsonrpc: '2.0', id, result } })
  })
}

it('ejects an MCP target after failed calls, until its duration ends', async () => {
  const statuses = { one: 500 }
  const [one, two] = await Promise.all([startToolServer(() => statuses.one), startToolServer(() => 200)])
  const targets = [
    { name: 'one', mcp: { host: `${one.url}/mcp` }, policies: { health: { eviction: { duration: '2s' } } } },
    { name: 'two', mcp: { host: `${two.url}/mcp` } },
  ]
  const gateway = await startMcpGateway(() => ({ targets }))
  const session = await openSession(gateway.mcpUrl)
  const names = async () => {
    const tools = member(await session.request('tools/list'), 'tools')
    return Array.isArray(tools) ? tools.map((tool) => member(tool, 'name')) : []
  }
  const search = (target: string) =>
    session.request('tools/call', { name: `${target}_search`, arguments: {} })
  const callsOfOne = () => one.seen.filter(({ json }) => member(json, 'method') === 'tools/call').length
  expect(await names()).toEqual(['one_search', 'two_search'])
  await search('one')
  expect(await search('one')).toMatchObject({
    message: expect.stringMatching(/^target "one" is ejected after failed requests: retry in [12] s$/),
  })
  expect(callsOfOne()).toBe(1)
  expect(await names()).toEqual(['two_search'])
  expect(await search('two')).toEqual({ content: [] })
  statuses.one = 200
  await until('the ejection ends', async () => (await names()).includes('one_search'))
  expect(await search('one')).toEqual({ content: [] })
  const ejections = `tollgate_destination_ejections_total{destination="mcp/one 127.0.0.1:${one.port}"} 1`
  expect(await gateway.metrics()).toContain(ejections)
})
