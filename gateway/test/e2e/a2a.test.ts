import { expect, it } from 'vitest'
import { createAgentClient, startAgent as startSdkAgent, userMessage } from '../support/a2a-agent.mjs'
import { endAfter } from '../support/cleanup.ts'
import { call } from '../support/http-call.ts'
import { jsonAnswer, startMockServer } from '../support/mock-server.ts'
import { sharedRouting } from '../support/traffic.ts'

const routing = sharedRouting()

async function startAgent() {
  const agent = await startSdkAgent()
  endAfter('test', () => agent.close())
  return agent
}

function route(host: string, policies: object = {}, prefix = '/weather') {
  return {
    name: 'weather',
    matches: [{ path: { pathPrefix: prefix } }],
    policies: { a2a: {}, ...policies },
    backends: [{ host }],
  }
}

const stripped = { urlRewrite: { path: { prefix: '/' } } }
const request = { tenant: '', configuration: undefined, metadata: undefined }

it('serves the official client with card, calls, streams and tasks through the gateway only', async () => {
  const agent = await startAgent()
  const { gateway, port } = await routing([route(agent.host, stripped)])
  const lines = gateway.requests().length
  const client = await createAgentClient(
    `http://127.0.0.1:${port}/weather`,
    '/weather/.well-known/agent-card.json',
  )
  const sent = await client.sendMessage({ ...request, message: userMessage('hello') })
  expect(sent).toMatchObject({ status: { state: 3 } })
  const kinds: unknown[] = []
  for await (const event of client.sendMessageStream({ ...request, message: userMessage('hello') }))
    kinds.push(event.payload?.$case)
  expect(kinds).toEqual(['task', 'statusUpdate'])
  const id = 'id' in sent ? sent.id : ''
  expect(await client.getTask({ tenant: '', id, historyLength: 1 })).toMatchObject({ id })
  const extended = await call(port, '/weather/rpc', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'GetExtendedAgentCard' }),
  })
  expect(JSON.parse(extended.text)).toMatchObject({
    id: 7,
    result: { supportedInterfaces: [{ url: `http://127.0.0.1:${port}/weather/rpc` }] },
  })
  expect(agent.seen.filter(({ path }) => path === '/rpc')).toHaveLength(4)
  const logged = (await gateway.logged(lines + 5)).slice(lines)
  expect(logged.map((line) => line['a2aMethod'])).toContain('SendStreamingMessage')
  expect(await gateway.metrics()).toContain(
    'tollgate_a2a_calls_total{policy="route weather",method="SendMessage"} 1',
  )
})

it('permits methods by rules, and refuses ambiguous messages', async () => {
  const agent = await startAgent()
  const rules = [{ require: 'request.method == "GET" || a2a.method in ["SendMessage", "GetTask"]' }]
  const { port } = await routing([route(agent.host, { ...stripped, authorization: { rules } })])
  const send = (body: string) =>
    call(port, '/weather/rpc', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const message = (method: string) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id: 'x' } })
  expect((await send(message('GetTask'))).status).toBe(200)
  expect((await send(message('CancelTask'))).status).toBe(403)
  for (const body of [
    '{"method":"GetTask","method":"CancelTask"}',
    '[{"method":"GetTask"}]',
    '{',
    '{"method":1}',
    '{"method":"GetTask","Method":"CancelTask"}',
  ])
    expect((await send(body)).status).toBe(400)
  // A body of another type has no method.
  expect((await call(port, '/weather/rpc', { method: 'POST', body: message('GetTask') })).status).toBe(415)
  expect((await call(port, '/weather/rpc', { method: 'POST', body: 'GetTask' })).status).toBe(403)
  expect(agent.seen).toHaveLength(1)
})

it('rewrites cards of revision 0.3', async () => {
  const card = {
    name: 'old',
    url: 'http://internal:9999/',
    additionalInterfaces: [{ url: 'http://internal:9999/v1', transport: 'HTTP+JSON' }],
    signatures: [{ protected: 'x' }],
  }
  const server = await startMockServer(jsonAnswer(200, card, { etag: '"1"' }))
  const { port } = await routing([route(`127.0.0.1:${server.port}`, {}, '/')])
  const answer = await call(port, '/.well-known/agent.json', {
    host: 'agents.test',
    headers: { 'accept-encoding': 'gzip' },
  })
  expect(JSON.parse(answer.text)).toEqual({
    name: 'old',
    url: 'http://agents.test/',
    additionalInterfaces: [{ url: 'http://agents.test/v1', transport: 'HTTP+JSON' }],
  })
  expect(answer.headers).not.toHaveProperty('etag')
  expect(server.seen[0]?.headers).toMatchObject({ 'accept-encoding': 'identity' })
})

it.each([
  ['text', 'nothing'],
  ['a list', '[]'],
  ['a huge document', `{"url": "${'x'.repeat(1_100_000)}"}`],
])('returns 502 for a card that is %s', async (_, body) => {
  const server = await startMockServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(body)
  })
  const { port } = await routing([route(`127.0.0.1:${server.port}`, {}, '/')])
  const answer = await call(port, '/.well-known/agent-card.json')
  expect([answer.status, answer.text.includes('xxx')]).toEqual([502, false])
})
