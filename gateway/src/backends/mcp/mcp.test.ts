import { describe, expect, it } from 'vitest'
import { mcpExchange } from '../../../test/fixtures/mcp.ts'
import { fixtureContext, textOf } from '../../../test/fixtures/pipeline.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import { createAuthState } from '../../pipeline/exchange.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { compileNamedDestination } from '../../upstream/destination.ts'
import type { McpBackendConfig } from './config.ts'
import { compileMcp } from './mcp.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } }

function answerTo({ body }: OutgoingRequest): Reply {
  const { id } = JSON.parse(typeof body === 'string' ? body : '{}')
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'up', version: '1' } }
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'mcp-session-id': 'up-1' },
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result })),
  }
}

function gateway(answer: (request: OutgoingRequest) => Reply = answerTo) {
  const sent: OutgoingRequest[] = []
  const context = {
    ...fixtureContext(),
    readFile: (path: string) => `content-of-${path}\n`,
    send: async (request: OutgoingRequest) => {
      sent.push(request)
      return answer(request)
    },
  }
  const compile = (config: McpBackendConfig, place: string, backends: readonly NamedBackend[] = []) =>
    compileMcp(config, context, {
      scope: place,
      maxBufferSize: 10_000,
      sessionKey: '00'.repeat(32),
      version: '1',
      destination: (reference) => compileNamedDestination(reference, backends, context),
    })
  return { sent, context, compile }
}

const remote: McpBackendConfig = { targets: [{ name: 'up', mcp: { host: 'http://up.test/mcp' } }] }

async function begin({ backend }: { backend: ReturnType<typeof compileMcp>['backend'] }): Promise<Headers> {
  const reply = await backend(mcpExchange('POST', { body: initialize }))
  expect(reply.status).toBe(200)
  return { 'mcp-session-id': String(reply.headers['mcp-session-id']) }
}

describe('MCP at several places', () => {
  it('refuses at one place the sessions of another, whether it remembers them or not', async () => {
    const { compile } = gateway()
    const one = compile(remote, 'route a')
    const other = compile({ targets: [...remote.targets] }, 'route b')
    const headers = await begin(one)
    expect((await one.backend(mcpExchange('POST', { body: call, headers }))).status).toBe(200)
    expect((await other.backend(mcpExchange('POST', { body: call, headers }))).status).toBe(404)
    // Another process with the same key knows the session at its place only.
    const elsewhere = gateway()
    const [same, different] = [elsewhere.compile(remote, 'route a'), elsewhere.compile(remote, 'route b')]
    expect((await same.backend(mcpExchange('POST', { body: call, headers }))).status).toBe(200)
    expect((await different.backend(mcpExchange('POST', { body: call, headers }))).status).toBe(404)
  })

  it('keeps sessions when the same place is compiled again, and stops each place by itself', async () => {
    const { compile } = gateway()
    const one = compile(remote, 'route a')
    const other = compile(remote, 'route b')
    const [ofOne, ofOther] = [await begin(one), await begin(other)]
    await one.stop()
    const again = compile(remote, 'route b')
    expect((await again.backend(mcpExchange('POST', { body: call, headers: ofOther }))).status).toBe(200)
    expect(ofOne).not.toEqual(ofOther)
  })
})

describe('MCP on a route', () => {
  it('answers probes for documents it does not have with 404, before and behind its path', async () => {
    const { backend } = gateway().compile(remote, 'route a')
    for (const path of ['/.well-known/x/a/mcp', '/a/mcp/.well-known/openid-configuration']) {
      expect((await backend(mcpExchange('GET', { path }))).status).toBe(404)
    }
  })

  it('serves HTTP+SSE at each path with the suffix /sse, and sends that path', async () => {
    const { backend } = gateway().compile(remote, 'route a')
    const reply = await backend(mcpExchange('GET', { path: '/a/sse' }))
    expect(reply.headers['content-type']).toContain('text/event-stream')
    const posted = await backend(mcpExchange('POST', { path: '/a/sse', body: call }))
    expect(textOf(posted)).toContain('sessionId')
  })
})

describe('a target at a named backend', () => {
  const config: McpBackendConfig = { targets: [{ name: 'up', mcp: { backend: '/tools', path: '/x' } }] }

  it('is called there, with its credential and connection, also when the session ends', async () => {
    const { sent, compile } = gateway()
    const backends = [
      { name: 'tools', host: 'up.test:8443', policies: { backendTLS: {}, backendAuth: { key: 'k' } } },
    ]
    const mcp = compile(config, 'route a', backends)
    const headers = await begin(mcp)
    await mcp.backend(mcpExchange('DELETE', { headers }))
    expect(sent.map(({ method }) => method)).toEqual(['POST', 'DELETE'])
    for (const request of sent) {
      expect(request).toMatchObject({ origin: 'https://up.test:8443', path: '/x' })
      expect(request.headers['authorization']).toBe('Bearer k')
      expect(request.connection?.tls).toBeDefined()
    }
  })

  it('follows the backend when that changes, though the target does not', async () => {
    const { sent, compile } = gateway()
    const first = compile(config, 'route a', [{ name: 'tools', host: 'one.test:1' }])
    const headers = await begin(first)
    const second = compile(config, 'route a', [{ name: 'tools', host: 'two.test:2' }])
    expect((await second.backend(mcpExchange('POST', { body: call, headers }))).status).toBe(404)
    await begin(second)
    expect(sent.filter(({ method }) => method === 'POST').map(({ origin }) => origin)).toEqual([
      'http://one.test:1',
      'http://two.test:2',
    ])
  })

  it('keeps its sessions when neither has changed', async () => {
    const { compile } = gateway()
    const backends = [{ name: 'tools', host: 'one.test:1' }]
    const headers = await begin(compile(config, 'route a', backends))
    const again = compile(config, 'route a', backends)
    expect((await again.backend(mcpExchange('POST', { body: call, headers }))).status).toBe(200)
  })

  it('cannot be compiled where there is no such backend', () => {
    expect(() => gateway().compile(config, 'route a')).toThrow(/tools/)
  })
})

describe('policies of a target', () => {
  const withPolicies = (
    policies: McpBackendConfig['targets'][number]['policies'],
    host = 'http://up.test/mcp',
  ): McpBackendConfig => ({ targets: [{ name: 'up', mcp: { host }, policies }] })

  it('give it a credential in place of the client’s', async () => {
    const { sent, compile } = gateway()
    const { backend } = compile(withPolicies({ backendAuth: { key: { file: '/k' } } }), 'mcp')
    await backend(mcpExchange('POST', { body: initialize, headers: { authorization: 'Bearer client' } }))
    expect(sent[0]?.headers['authorization']).toBe('Bearer content-of-/k')
  })

  it('do not send the client to find another credential where the gateway’s own is refused', async () => {
    const refusal: Reply = { status: 401, headers: { 'www-authenticate': 'Bearer x' }, body: undefined }
    const { compile } = gateway(() => refusal)
    const own = compile(withPolicies({ backendAuth: { key: 'k' } }), 'mcp')
    const reply = await own.backend(mcpExchange('POST', { body: initialize }))
    expect(reply.status).toBe(502)
    expect(reply.headers['www-authenticate']).toBeUndefined()
    const clients = compile(withPolicies({ backendAuth: { passthrough: {} } }), 'mcp')
    const passed = await clients.backend(mcpExchange('POST', { body: initialize }))
    expect(passed).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer x' } })
  })

  it('forward client credentials only if configured', async () => {
    const { sent, compile } = gateway()
    for (const policies of [undefined, { backendAuth: { passthrough: {} } }]) {
      const { backend } = compile(withPolicies(policies), 'mcp')
      await backend({
        ...mcpExchange('POST', { body: initialize }),
        auth: { ...createAuthState(), credential: 'token' },
      })
    }
    const posted = sent.filter(({ method }) => method === 'POST')
    expect(posted.map(({ headers }) => headers['authorization'])).toEqual([undefined, 'Bearer token'])
  })

  it('change its headers and reach it over TLS', async () => {
    const { sent, compile } = gateway()
    const policies = {
      backendTLS: { insecure: true },
      requestHeaderModifier: { set: { 'X-Team': 'a' }, remove: ['x-internal'] },
    }
    for (const host of ['http://up.test:8443/mcp', 'up.test:8443']) {
      const { backend } = compile(withPolicies(policies, host), 'mcp')
      await backend(mcpExchange('POST', { body: initialize, headers: { 'x-internal': '1' } }))
    }
    for (const request of sent) {
      expect(request.origin).toBe('https://up.test:8443')
      expect(request.headers).toMatchObject({ 'x-team': 'a' })
      expect(request.headers['x-internal']).toBeUndefined()
      expect(request.connection?.tls).toMatchObject({ insecure: 'any' })
    }
  })

  it('keep the credential of an API from the server of its document', async () => {
    const { sent, context, compile } = gateway(({ path }) => ({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(
        path === '/api.json'
          ? JSON.stringify({
              openapi: '3.1.0',
              info: { title: 't', version: '1' },
              paths: { '/pets': { get: { operationId: 'list' } } },
            })
          : '[]',
      ),
    }))
    context.parseYaml = JSON.parse
    const openapi = { host: 'http://api.test', schema: { url: 'http://docs.test/api.json' } }
    const targets = [{ name: 'api', openapi, policies: { backendAuth: { key: 'k' } } }]
    const { backend } = compile({ targets, statefulMode: 'stateless' }, 'mcp')
    await backend(mcpExchange('POST', { body: { ...call, params: { name: 'list', arguments: {} } } }))
    expect(sent.map(({ origin, headers }) => [origin, headers['authorization']])).toEqual([
      ['http://docs.test', undefined],
      ['http://api.test', 'Bearer k'],
    ])
  })
})

describe('the access log', () => {
  const several: McpBackendConfig = {
    targets: [
      { name: 'one', mcp: { host: 'http://one.test/mcp' } },
      { name: 'two', mcp: { host: 'http://two.test/mcp' } },
    ],
  }

  it('learns method, item and target of a call', async () => {
    const { backend } = gateway().compile(remote, 'mcp')
    const headers = await begin({ backend })
    const exchange = mcpExchange('POST', { body: call, headers })
    await backend(exchange)
    expect(exchange.mcp?.call).toEqual({ method: 'tools/call', item: 'echo', target: 'up' })
  })

  it('learns which of several targets a call went to, and of none that does not exist', async () => {
    const { backend } = gateway().compile({ ...several, statefulMode: 'stateless' }, 'mcp')
    const noted = []
    for (const name of ['two_echo', 'three_echo']) {
      const exchange = mcpExchange('POST', { body: { ...call, params: { name } } })
      await backend(exchange)
      noted.push(exchange.mcp?.call)
    }
    expect(noted).toEqual([
      { method: 'tools/call', item: 'two_echo', target: 'two' },
      { method: 'tools/call', item: 'three_echo', target: undefined },
    ])
  })

  it('omits the query of a resource, which may contain secrets', async () => {
    const { backend } = gateway().compile(remote, 'mcp')
    const headers = await begin({ backend })
    const body = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'http://x/y?token=s#f' } }
    const exchange = mcpExchange('POST', { body, headers })
    await backend(exchange)
    expect(exchange.mcp?.call?.item).toBe('http://x/y')
  })
})

it('applies header changes of policies to requests to targets', async () => {
  const { sent, compile } = gateway()
  const { backend } = compile(remote, 'mcp')
  const edit = (headers: Headers) => {
    headers['x-route'] = 'a'
  }
  const forwarding = { path: undefined, host: undefined, headerEdits: [edit] }
  await backend({ ...mcpExchange('POST', { body: initialize }), forwarding })
  expect(sent[0]?.headers['x-route']).toBe('a')
})
