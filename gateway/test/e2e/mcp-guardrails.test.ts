import { describe, expect, it } from 'vitest'
import type { Gateway } from '../support/gateway.ts'
import { connectClient, generations } from '../support/mcp-clients.ts'
import { startFaultyServer } from '../support/mcp-faulty-server.ts'
import { programTarget, sdkTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { type GuardAnswer, startGuardService } from '../support/mcp-guard-service.ts'
import { openSession, type RawSession } from '../support/mcp-raw.ts'
import { type Answer, member, startMockServer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'
import { mockWebhook } from '../support/webhook.ts'

/** Guards of MCP messages: services with the protocol ExtMcp, patterns and webhooks. */

const ask = (name: string, args: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { ...args } } },
})

async function callOf(session: RawSession, name: string, args: object = {}) {
  const { messages } = await session.send(ask(name, args))
  return messages.at(-1)
}

function startWith(mcpGuardrails: object, ...targets: object[]): Promise<Gateway> {
  return startMcpGateway(() => ({ policies: { mcpGuardrails }, targets }))
}

/** Answers the next call of a tool with this result text. */
function returns(result: string): Answer {
  return ({ json }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(member(json, 'id'))},"result":${result}}`)
  }
}

describe('a service that checks messages', () => {
  it('decides on calls by target, with headers and metadata', async () => {
    const guard = await startGuardService()
    const server = await startFaultyServer()
    const gateway = await startWith(
      {
        processors: [
          {
            host: guard.host,
            methods: { 'tools/call': 'full', '*/list': 'response' },
            metadata: { tool: 'mcp.tool.name', missing: 'jwt.sub' },
            requestHeaders: { disallowed: ['x-secret'] },
          },
        ],
      },
      { name: 'tools', mcp: { host: `${server.url}/mcp` } },
      programTarget('files'),
    )
    const session = await openSession(gateway.mcpUrl, { 'x-team': 'red', 'x-secret': 'hidden' })
    guard.answer = ({ content, phase }): GuardAnswer => {
      if (content?.includes('forbidden') === true)
        return { error: { code: 'PERMISSION_DENIED', reason: 'not this one', mcpError: '{"rule":7}' } }
      const headerMutation = { set: [{ key: 'X-Added', value: 'eWVz' }], remove: ['x-team'] }
      return { pass: {}, ...(phase === 'request' && { headerMutation }) }
    }
    expect(await callOf(session, 'tools_forbidden')).toEqual({
      ...{ jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'not this one', data: { rule: 7 } } },
    })
    expect(await callOf(session, 'tools_fine')).toMatchObject({ result: { content: [{ text: 'fine' }] } })
    expect(guard.seen.map(({ phase }) => phase)).toEqual(['request', 'request', 'response'])
    const [first] = guard.seen
    expect(first).toMatchObject({ targets: ['tools'], method: 'tools/call', metadata: { tool: 'forbidden' } })
    expect(first?.headers).toMatchObject({ 'x-team': 'red', ':method': 'POST', ':path': '/mcp' })
    expect(first?.headers).not.toHaveProperty('x-secret')
    const call = server.seen.find(({ json }) => member(json, 'method') === 'tools/call')
    expect([call?.headers['x-added'], call?.headers['x-team']]).toEqual(['yes', undefined])
    expect((await gateway.logged(3)).find(({ refusedBy }) => refusedBy !== undefined)).toMatchObject({
      ...{ refusedBy: 'guardrail: mcp processor 1', mcpTarget: 'tools' },
    })
    expect(await gateway.metrics()).toContain(
      'tollgate_guardrail_checks_total{guard="mcp processor 1",phase="request",outcome="reject"} 1',
    )
  })

  it('changes parameters and results, and leaves all other bytes', async () => {
    const guard = await startGuardService()
    const server = await startFaultyServer()
    const gateway = await startWith(
      { processors: [{ host: guard.host, methods: { '*': 'full' } }] },
      { name: 'tools', mcp: { host: `${server.url}/mcp` } },
    )
    const session = await openSession(gateway.mcpUrl)
    guard.answer = ({ method, phase }): GuardAnswer => {
      if (method !== 'tools/call') return { pass: {} }
      return { mutated: phase === 'request' ? '{"name":"x","arguments":{"b":2}}' : '{"content":[]}' }
    }
    const sent =
      '{"jsonrpc":"2.0", "id":1e0 ,"method":"tools/call","params":{"name":"x"},"z":12345678901234567890}'
    expect((await session.send(sent)).messages.at(-1)).toMatchObject({ result: { content: [] } })
    expect(server.seen.find(({ json }) => member(json, 'method') === 'tools/call')?.text).toBe(
      sent.replace('{"name":"x"}', '{"name":"x","arguments":{"b":2}}'),
    )
    guard.answer = ({ phase }) => (phase === 'request' ? { mutated: '{"name":"other"}' } : { pass: {} })
    expect(await callOf(session, 'x')).toMatchObject({ error: { message: /must not change the name/ } })
  })

  it.each([
    ['hangs', () => new Promise<GuardAnswer>(() => {})],
    ['fails', () => Promise.reject(new Error('broken'))],
    ['sends no decision', () => ({})],
    ['sends no JSON', () => ({ mutated: '{"a":1,"a":2}' })],
  ] as const)('refuses the message if it %s, unless it fails open', async (_, answer) => {
    const guard = await startGuardService()
    guard.answer = answer
    const processor = {
      ...{ host: guard.host, methods: { 'tools/call': 'request' } },
      policies: { http: { requestTimeout: '300ms' } },
    }
    const closed = await startWith({ processors: [processor] }, programTarget('files'))
    const refused = await callOf(await openSession(closed.mcpUrl), 'whoami')
    expect(refused).toMatchObject({ error: { code: -32603, message: 'guard of MCP messages failed' } })
    const open = await startWith(
      { processors: [{ ...processor, failureMode: 'failOpen' }] },
      programTarget('files'),
    )
    expect(await callOf(await openSession(open.mcpUrl), 'whoami')).toHaveProperty('result')
  })
})

describe('guards of texts', () => {
  const masking = { regex: { rules: [{ builtin: 'email' }] } }

  it('mask texts of arguments and results, and preserve all other bytes', async () => {
    const server = await startFaultyServer()
    const gateway = await startWith(
      { request: [masking], response: [masking] },
      { name: 'tools', mcp: { host: `${server.url}/mcp` } },
    )
    const session = await openSession(gateway.mcpUrl)
    server.next(
      returns(
        '{"content":[{"type":"text","text":"from a@b.example"},{"type":"image","data":"aaaa","mimeType":"a@b.example"}],"structuredContent":{"n":1e400,"type":"c@d.example"}}',
      ),
    )
    const { text } = await session.send(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"to":["a@b.example"],"n":1.0}}}',
    )
    expect(text).toContain(
      '{"content":[{"type":"text","text":"from <EMAIL_ADDRESS>"},{"type":"image","data":"aaaa","mimeType":"a@b.example"}],"structuredContent":{"n":1e400,"type":"<EMAIL_ADDRESS>"}}',
    )
    const call = server.seen.find(({ json }) => member(json, 'method') === 'tools/call')
    expect(call?.text).toContain('"arguments":{"to":["<EMAIL_ADDRESS>"],"n":1.0}')
  })

  it('mask HTTP errors of targets, and copies of requests', async () => {
    const server = await startFaultyServer()
    const mirror = await startMockServer((_, response) => void response.writeHead(200).end())
    const gateway = await startMcpGateway(() => ({
      policies: {
        mcpGuardrails: { request: [masking], response: [masking] },
        requestMirror: { backend: { host: new URL(mirror.url).host } },
      },
      targets: [{ name: 'tools', mcp: { host: `${server.url}/mcp` } }],
    }))
    const session = await openSession(gateway.mcpUrl)
    server.next((_, response) => void response.writeHead(500).end('not for a@b.example'))
    const answer = await callOf(session, 'x', { to: 'c@d.example' })
    expect(answer).toMatchObject({ error: { data: { status: 500, body: 'not for <EMAIL_ADDRESS>' } } })
    await until('the copies arrive', () => (mirror.seen.length >= 2 ? true : undefined))
    expect(mirror.seen.map(({ json }) => member(json, 'method'))).toEqual(['initialize', 'tools/call'])
    expect(member(mirror.seen[1]?.json, 'params', 'arguments')).toEqual({ to: '<EMAIL_ADDRESS>' })
  })

  it('of a webhook reject arguments, over two data planes', async () => {
    const webhook = await mockWebhook()
    const guard = { webhook: { target: { host: new URL(webhook.url).host } } }
    const gateway = await startMcpGateway(
      () => ({
        policies: { mcpGuardrails: { request: [guard] } },
        targets: [programTarget('one'), programTarget('two')],
      }),
      { config: { workerThreads: 2 } },
    )
    const session = await openSession(gateway.mcpUrl)
    const results = await Promise.all(
      ['please', 'block it', 'please'].map((text) => callOf(session, 'two_whoami', { text })),
    )
    expect(results.map((result) => member(result, 'error', 'message') ?? 'ok')).toEqual([
      'ok',
      'request blocked',
      'ok',
    ])
  })

  it.each(generations)('pass %s with streams, progress and requests of the server', async (generation) => {
    const guard = await startGuardService()
    const gateway = await startWith(
      {
        processors: [{ host: guard.host, methods: { '*': 'full' } }],
        request: [masking],
        response: [masking],
      },
      sdkTarget('sdk'),
    )
    const client = await connectClient(generation, gateway.mcpUrl)
    expect((await client.tools()).length).toBeGreaterThan(0)
    expect((await client.resources()).length).toBeGreaterThan(0)
    expect(guard.seen.map(({ method }) => method)).toContain('initialize')
  })

  it('refuse a result that is sent to a resumed stream instead of its request', async () => {
    const server = await startFaultyServer()
    const gateway = await startWith(
      { response: [masking] },
      { name: 'tools', mcp: { host: `${server.url}/mcp` } },
    )
    const session = await openSession(gateway.mcpUrl)
    server.next((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const result = { jsonrpc: '2.0', id: 9, result: { content: [{ type: 'text', text: 'a@b.example' }] } }
      response.end(`id: 2\ndata: ${JSON.stringify(result)}\n\n`)
    })
    const response = await fetch(gateway.mcpUrl, {
      headers: { ...session.headers, accept: 'text/event-stream', 'last-event-id': '1' },
      signal: AbortSignal.timeout(1_000),
    })
    const text = await response.text().catch(() => '')
    expect(text).not.toContain('a@b.example')
  })
})
