import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { connectClient, generations } from '../support/mcp-clients.ts'
import { type FaultyServer, startFaultyServer } from '../support/mcp-faulty-server.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { openSession, post } from '../support/mcp-raw.ts'
import { type Answer, member, sendJson, startMockServer } from '../support/mock-server.ts'
import { createTokenIssuer } from '../support/token-issuer.ts'
import { until } from '../support/wait.ts'

/** Policies of routes at MCP endpoints: the `mcp` section and routes with an mcp backend. */

const call = (name: string) => ({ name, arguments: {} })
const initializeMessage = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
const refusal: Answer = (_, response) => void response.writeHead(503).end('busy')
const silence: Answer = () => {}
const target = ({ url }: { url: string }, name = 'tools', policies?: object) => ({
  ...{ name, mcp: { host: `${url}/mcp` } },
  ...(policies && { policies }),
})
const received = ({ seen }: FaultyServer, method: string) =>
  seen.filter(({ json }) => member(json, 'method') === method)

describe('defaults of targets', () => {
  it('has the credential of the endpoint, unless the target has one', async () => {
    const [one, two] = await Promise.all([startFaultyServer(), startFaultyServer()])
    const gateway = await startMcpGateway(() => ({
      policies: { backendAuth: { key: 'of-all' } },
      targets: [target(one, 'one'), target(two, 'two', { backendAuth: { key: 'of-two' } })],
    }))
    await openSession(gateway.mcpUrl)
    expect(received(one, 'initialize')[0]?.headers.authorization).toBe('Bearer of-all')
    expect(received(two, 'initialize')[0]?.headers.authorization).toBe('Bearer of-two')
  })

  it('exchanges the token of each user, on every worker thread', async () => {
    const users = await createTokenIssuer('https://users.test', 'tools')
    const server = await startFaultyServer()
    const forms: URLSearchParams[] = []
    const issuer = await startMockServer(({ text }, response) => {
      const form = new URLSearchParams(text)
      forms.push(form)
      const payload = form.get('subject_token')?.split('.')[1] ?? ''
      const { sub } = JSON.parse(Buffer.from(payload, 'base64url').toString())
      const token = { access_token: `for-${sub}`, token_type: 'Bearer', expires_in: 300 }
      if (sub === 'eve') sendJson(response, { status: 400, body: { error: 'invalid_grant' } })
      else sendJson(response, { status: 200, body: token })
    })
    const gateway = await startMcpGateway(
      () => ({
        policies: {
          jwtAuth: { issuer: users.issuer, audiences: ['tools'], jwks: users.keys },
          backendAuth: { oauthTokenExchange: { host: new URL(issuer.url).host, path: '/token' } },
        },
        targets: [target(server, 'one'), programTarget('files')],
      }),
      { config: { workerThreads: 2 } },
    )
    const bearer = async (sub: string) => ({ authorization: `Bearer ${await users.token({ sub })}` })
    for (const sub of ['ada', 'bob', 'ada']) {
      const session = await openSession(gateway.mcpUrl, await bearer(sub))
      for (const name of ['one_a', 'one_b'])
        expect(await session.request('tools/call', call(name))).toHaveProperty('content')
    }
    const seen = received(server, 'tools/call').map(({ headers }) => headers.authorization)
    expect(seen).toEqual(['ada', 'ada', 'bob', 'bob', 'ada', 'ada'].map((sub) => `Bearer for-${sub}`))
    const refused = await post(gateway.mcpUrl, initializeMessage, await bearer('eve'))
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([403, null])
    expect(gateway.stdout()).not.toContain(forms[0]?.get('subject_token'))
  })

  it('applies on routes, their entries and named backends, the most specific first', async () => {
    const server = await startFaultyServer()
    const named = { name: 'tools', mcp: { targets: [{ name: 'tools', mcp: { backend: '/server' } }] } }
    const config = (port: number): GatewayConfig => ({
      gateways: { web: { port } },
      backends: [
        { name: 'server', host: new URL(server.url).host },
        { ...named, policies: { requestHeaderModifier: { set: { 'x-place': 'named' } } } },
      ],
      routes: [
        {
          gateways: 'web',
          policies: { backendAuth: { key: 'of-route' } },
          backends: [
            {
              backend: '/tools',
              policies: {
                backendAuth: { key: 'of-entry' },
                responseHeaderModifier: { set: { 'x-reply': 'of-entry' } },
              },
            },
          ],
        },
      ],
    })
    const port = await freePort()
    await startGateway(config(port))
    const session = await openSession(`http://127.0.0.1:${port}/mcp`)
    expect(session.initialized.headers.get('x-reply')).toBe('of-entry')
    expect(received(server, 'initialize')[0]?.headers).toMatchObject({
      authorization: 'Bearer of-entry',
      'x-place': 'named',
    })
  })

  it('has no effect on sessions when it does not change', async () => {
    const server = await startFaultyServer()
    const port = await freePort()
    const config = (name: string): GatewayConfig => ({
      mcp: {
        port,
        targets: [target(server)],
        policies: {
          backendAuth: { key: 'secret' },
          retry: { attempts: 2 },
          responseHeaderModifier: { set: { 'x-name': name } },
        },
      },
    })
    const gateway = await startGateway(config('one'))
    const session = await openSession(`http://127.0.0.1:${port}/mcp`)
    await gateway.reload(config('two'))
    const answer = await session.send({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: call('x') })
    expect([answer.status, answer.headers.get('x-name')]).toEqual([200, 'two'])
    expect(server.sessions.size).toBe(1)
  })
})

describe('retry', () => {
  it('repeats messages without side effects, and calls of tools only where permitted', async () => {
    const server = await startFaultyServer()
    const gateway = await startMcpGateway(() => ({
      policies: { retry: { attempts: 2, backoff: '1ms', codes: [503] } },
      targets: [target(server)],
    }))
    server.next(refusal, refusal)
    const session = await openSession(gateway.mcpUrl)
    expect(received(server, 'initialize').map(({ headers }) => headers['x-retry-attempt'])).toEqual([
      undefined,
      '1',
      '2',
    ])
    server.next(refusal)
    expect(await session.request('prompts/get', call('x'))).toHaveProperty('content')
    server.next(refusal)
    const failed = await session.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: call('x') })
    expect(failed.text).toContain('503')
    expect(received(server, 'tools/call')).toHaveLength(1)
  })

  it('repeats calls of tools if methods has POST', async () => {
    const server = await startFaultyServer()
    const gateway = await startMcpGateway(() => ({
      policies: { retry: { attempts: 1, backoff: '1ms', methods: ['POST'] } },
      targets: [target(server)],
    }))
    const session = await openSession(gateway.mcpUrl)
    server.next(refusal)
    expect(await session.request('tools/call', call('x'))).toHaveProperty('content')
    expect(received(server, 'tools/call')).toHaveLength(2)
  })
})

describe('timeout', () => {
  it('limits a call, and leaves the session usable', async () => {
    const server = await startFaultyServer()
    const gateway = await startMcpGateway(() => ({
      policies: { timeout: { requestTimeout: '2s', backendRequestTimeout: '300ms' } },
      targets: [target(server)],
    }))
    const session = await openSession(gateway.mcpUrl)
    server.next(silence)
    const slow = await session.send({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: call('x') })
    expect(slow.text).toContain('timeout')
    expect(await session.request('tools/call', call('x'))).toHaveProperty('content')
  })

  it('of the request is 504 before the response', async () => {
    const server = await startFaultyServer()
    const gateway = await startMcpGateway(() => ({
      policies: { timeout: { requestTimeout: '300ms' } },
      targets: [target(server)],
    }))
    const session = await openSession(gateway.mcpUrl)
    server.next(silence)
    const slow = await session.send({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: call('x') })
    expect(slow.status).toBe(504)
  })

  it.each(generations)('does not end streams of %s', async (generation) => {
    const gateway = await startMcpGateway(() => ({
      policies: { timeout: { requestTimeout: '5s' }, retry: { attempts: 1 } },
      targets: [programTarget('files')],
    }))
    const client = await connectClient(generation, gateway.mcpUrl)
    expect(await client.call('whoami')).toBe('files')
  })
})

describe('policies that answer or copy', () => {
  it('redirects and answers instead of targets', async () => {
    const gateway = await startMcpGateway(() => ({
      policies: { directResponse: { status: 404, body: 'Not found!' } },
      targets: [programTarget('files')],
    }))
    const answer = await post(gateway.mcpUrl, initializeMessage)
    expect([answer.status, answer.text]).toEqual([404, 'Not found!'])
    const moved = await startMcpGateway(() => ({
      policies: {
        requestRedirect: { scheme: 'https', authority: { full: 'example.com' }, status: 307 },
      },
      targets: [programTarget('files')],
    }))
    const response = await fetch(moved.mcpUrl, { method: 'POST', body: '{}', redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([307, 'https://example.com/mcp'])
  })

  it('copies messages with the rewritten path and without the session id', async () => {
    const mirror = await startMockServer((_, response) => void response.writeHead(200).end())
    const gateway = await startMcpGateway(() => ({
      policies: {
        requestMirror: { backend: { host: new URL(mirror.url).host } },
        urlRewrite: { path: { full: '/copies' } },
      },
      targets: [programTarget('files')],
    }))
    const session = await openSession(gateway.mcpUrl)
    expect(await session.request('tools/call', call('whoami'))).toHaveProperty('content')
    await until('the copies arrive', () => (mirror.seen.length >= 3 ? true : undefined))
    const copy = mirror.seen.find(({ json }) => member(json, 'method') === 'tools/call')
    expect(copy).toMatchObject({ path: '/copies', json: { params: { name: 'whoami' } } })
    expect(copy?.headers).not.toHaveProperty('mcp-session-id')
  })

  it('reports policies of HTTP requests in front of programs', async () => {
    const gateway = await startMcpGateway(() => ({
      policies: { backendAuth: { key: 'secret' }, timeout: { backendRequestTimeout: '1s' } },
      targets: [programTarget('files')],
    }))
    const warning = 'policy without effect: all targets are stdio programs'
    const text = await until('the warning is logged', () => {
      const output = gateway.stdout()
      return output.includes(warning) ? output : undefined
    })
    expect(text).toContain('timeout.backendRequestTimeout')
    expect(text).not.toContain('secret')
  })
})
