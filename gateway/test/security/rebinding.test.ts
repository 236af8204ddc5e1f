import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type CallOptions, call } from '../support/http-call.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { until } from '../support/wait.ts'

// Requests that a web page can cause a local browser to send to a gateway on all addresses.

let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway(
    {
      config: { bindAddress: '::' },
      frontendPolicies: { http: { allowedHosts: ['ai.example.com'] } },
      llm: { models: [{ name: 'echo', provider: 'echo' }] },
      mcp: { targets: [programTarget('tools')] },
    },
    { lifetime: 'file' },
  )
})

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
})
const chat = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'Hello' }] })
const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const askMcp = (options: CallOptions) =>
  call(gateway.mcpPort, '/mcp', { method: 'POST', body: initialize, headers: json, ...options })
const askModel = (options: CallOptions) =>
  call(gateway.port, '/v1/chat/completions', { method: 'POST', body: chat, headers: json, ...options })

describe('a page whose name resolves to the gateway', () => {
  it.each([
    ['MCP servers', askMcp],
    ['models', askModel],
  ])('does not reach %s', async (_, ask) => {
    const rebound = { host: 'evil.example:4000', headers: { ...json, origin: 'http://evil.example:4000' } }
    expect(await ask(rebound)).toMatchObject({
      status: 403,
      text: expect.stringContaining('host not allowed'),
    })
    expect((await ask({ host: 'evil.example' })).status).toBe(403)
    await until('the log names the reason', () =>
      gateway.requests().some(({ refusedBy }) => refusedBy === 'host_not_allowed'),
    )
  })

  it.each(['localhost', '127.0.0.1', 'tollgate', 'ai.example.com', '[::1]'])(
    'is distinguished from a client that names %s',
    async (host) => {
      expect((await askMcp({ host })).status).toBe(200)
      expect((await askModel({ host })).status).toBe(200)
    },
  )
})

describe('a page of another site', () => {
  const origin = 'https://evil.example'

  it.each([
    ['with its origin', { ...json, origin }, 403],
    ['without a content type', { origin }, 415],
    ['in text form', { origin, 'content-type': 'text/plain' }, 403],
    ['with an opaque origin', { ...json, origin: 'null' }, 403],
    ['without an origin', { ...json, 'sec-fetch-site': 'cross-site' }, 403],
  ])('cannot ask models %s', async (_, headers, status) => {
    expect((await askModel({ headers })).status).toBe(status)
  })

  it('cannot read the list of models, nor ask for permission', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }
    expect((await call(gateway.port, '/v1/models', { headers })).status).toBe(403)
    const preflight = { origin, 'access-control-request-method': 'POST' }
    const asked = await call(gateway.port, '/v1/chat/completions', { method: 'OPTIONS', headers: preflight })
    expect(asked.status).toBe(403)
    expect(asked.headers).not.toHaveProperty('access-control-allow-origin')
  })
})
