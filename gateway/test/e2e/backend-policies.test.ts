import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { startAuthorizationService, startHttpAuthorizer } from '../support/authorization-service.ts'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { call } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { mockOpenAi, openAiKey } from '../support/mock-openai.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { certificateFiles, namedUpstream, sharedRouting } from '../support/traffic.ts'

let upstream: MockServer & { host: string }
const routing = sharedRouting()

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
})

const at = (path: string) => ({ matches: [{ path: { pathPrefix: path } }] })
const backendOf = (policies: object, more: object = {}) => ({ host: upstream.host, policies, ...more })

describe('policies of an HTTP backend', () => {
  it('transforms requests and responses of this backend only, after the policies of the route', async () => {
    const transformations = {
      request: { set: { 'x-backend': '"a"', ':path': '"/moved" + request.path' }, remove: ['x-secret'] },
      response: { set: { 'x-status': 'string(response.code)' } },
    }
    const policies = { requestHeaderModifier: { set: { 'x-backend': 'route', 'x-route': 'yes' } } }
    const { port } = await routing([
      { name: 'changed', ...at('/a'), policies, backends: [backendOf({ transformations })] },
      { name: 'plain', ...at('/b'), policies, backends: [{ host: upstream.host }] },
    ])
    const changed = await call(port, '/a/x', { headers: { 'x-secret': '1' } })
    expect(changed.headers).toMatchObject({ 'x-status': '200' })
    expect(upstream.seen.at(-1)).toMatchObject({ path: '/moved/a/x' })
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-backend': 'a', 'x-route': 'yes' })
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('x-secret')
    const plain = await call(port, '/b', { headers: { 'x-secret': '1' } })
    expect(plain.headers).not.toHaveProperty('x-status')
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-backend': 'route', 'x-secret': '1' })
  })

  it('denies by the rules of the named backend and of the entry, without a retry', async () => {
    const authorization = (rule: string) => ({ authorization: { rules: [rule] } })
    const { port } = await routing(
      [
        {
          policies: { retry: { attempts: 3, codes: [403] } },
          backends: [{ backend: '/up', policies: authorization('request.headers["x-entry"] == "1"') }],
        },
      ],
      {
        backends: [
          { name: 'up', host: upstream.host, policies: authorization('request.headers["x-named"] == "1"') },
        ],
      },
    )
    const count = upstream.seen.length
    const both = { 'x-entry': '1', 'x-named': '1' }
    expect((await call(port, '/', { headers: both })).status).toBe(200)
    expect((await call(port, '/', { headers: { 'x-entry': '1' } })).status).toBe(403)
    expect((await call(port, '/', { headers: { 'x-named': '1' } })).status).toBe(403)
    expect(upstream.seen).toHaveLength(count + 1)
  })

  it('applies the policies of each attempt to the request of the route', async () => {
    const failing = await startMockServer((_, response) => response.writeHead(503).end())
    const set = (name: string) => ({ transformations: { request: { add: { 'x-tried': `"${name}"` } } } })
    const { port } = await routing([
      {
        policies: { retry: { attempts: 1 }, requestHeaderModifier: { add: { 'x-tried': 'route' } } },
        backends: [
          { host: `127.0.0.1:${failing.port}`, weight: 1_000_000, policies: set('first') },
          backendOf(set('second'), { weight: 1 }),
        ],
      },
    ])
    const reply = await call(port, '/', { method: 'PUT', body: 'text' })
    expect(reply.status).toBe(200)
    expect(failing.seen.at(-1)?.headers).toMatchObject({ 'x-tried': 'route,first' })
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-tried': 'route,second', 'x-retry-attempt': '1' })
    expect(upstream.seen.at(-1)?.text).toBe('text')
  })

  it('sends copies without the changes for the backend', async () => {
    const copies = await namedUpstream('copies')
    const transformations = { request: { set: { 'x-backend': '"a"' }, body: '"replaced"' } }
    const { port } = await routing([
      {
        policies: { requestMirror: { backend: { host: copies.host } } },
        backends: [backendOf({ transformations })],
      },
    ])
    await call(port, '/', { method: 'POST', body: 'original' })
    await expect.poll(() => copies.seen.length).toBe(1)
    expect(copies.seen[0]?.text).toBe('original')
    expect(copies.seen[0]?.headers).not.toHaveProperty('x-backend')
    expect(upstream.seen.at(-1)).toMatchObject({ text: 'replaced', headers: { 'x-backend': 'a' } })
  })

  it('sends copies of permitted requests only', async () => {
    const copies = await namedUpstream('copies')
    const service = await startHttpAuthorizer(({ headers }, response) => {
      response.writeHead(headers.authorization === 'yes' ? 200 : 401).end()
    })
    const policies = { requestMirror: { backend: { host: copies.host } } }
    const retried = { ...policies, retry: { attempts: 1, codes: [503] } }
    const extAuthz = { host: service.host, protocol: { http: {} } }
    const requestRedirect = { scheme: 'https', authority: { host: 'example.test' } }
    const { port } = await routing([
      { name: 'asked', ...at('/asked'), policies, backends: [backendOf({ extAuthz })] },
      {
        name: 'ruled',
        ...at('/ruled'),
        policies,
        backends: [backendOf({ authorization: { rules: ['false'] } })],
      },
      { name: 'moved', ...at('/moved'), policies, backends: [backendOf({ requestRedirect })] },
      { name: 'retried', ...at('/retried'), policies: retried, backends: [backendOf({ extAuthz })] },
    ])
    for (const path of ['/asked', '/ruled', '/moved', '/retried']) {
      const reply = await call(port, path, { method: 'POST', body: 'refused' })
      expect(reply.status, path).not.toBe(200)
    }
    for (const path of ['/asked', '/retried']) {
      const headers = { authorization: 'yes' }
      expect((await call(port, path, { method: 'POST', body: path, headers })).status).toBe(200)
    }
    await expect.poll(() => copies.seen.length).toBe(2)
    expect(copies.seen.map(({ text }) => text).toSorted()).toEqual(['/asked', '/retried'])
  })

  it('asks the authorization service of the chosen backend, and redirects', async () => {
    const service = await startHttpAuthorizer(({ headers }, response) => {
      response.writeHead(headers.authorization === 'yes' ? 200 : 401).end()
    })
    const extAuthz = { host: service.host, protocol: { http: {} } }
    const requestRedirect = { scheme: 'https', authority: { host: 'example.test' } }
    const { port } = await routing([
      { name: 'asked', ...at('/asked'), backends: [backendOf({ extAuthz })] },
      { name: 'moved', ...at('/moved'), backends: [backendOf({ requestRedirect })] },
    ])
    expect((await call(port, '/asked', { headers: { authorization: 'yes' } })).status).toBe(200)
    expect((await call(port, '/asked')).status).toBe(401)
    const moved = await call(port, '/moved/x')
    expect(moved).toMatchObject({ status: 302, headers: { location: 'https://example.test/moved/x' } })
  })

  it('rewrites cards of agents, and passes upgrades with their changes', async () => {
    const card = JSON.stringify({ name: 'agent', url: 'http://internal:1/agent' })
    const agent = await startMockServer((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(card),
    )
    const { port } = await routing([
      {
        name: 'agent',
        ...at('/.well-known'),
        backends: [{ host: `127.0.0.1:${agent.port}`, policies: { a2a: {} } }],
      },
      {
        name: 'socket',
        ...at('/socket'),
        backends: [backendOf({ transformations: { request: { set: { 'x-backend': '"a"' } } } })],
      },
    ])
    expect((await call(port, '/.well-known/agent.json')).text).toContain(`http://127.0.0.1:${port}`)
    const head = 'GET /socket HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: test\r\n\r\n'
    const socket = connect(port, '127.0.0.1', () => socket.write(head))
    await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ upgrade: 'test', 'x-backend': 'a' })
  })
})

describe('backendTunnel', () => {
  it('connects over HTTP/1.1, HTTP/2, gRPC, TLS and TCP through a proxy with its credential', async () => {
    const proxy = await startProxy('Basic dTpw')
    const authority = createAuthority('tunnel')
    const { cert, key } = authority.issue('localhost')
    const secure = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) =>
      response.end(`tls ${request.httpVersion}`),
    )
    const plain = createHttp2Server((_, response) => response.end('h2c'))
    endAfter('test', () => {
      for (const server of [secure, plain]) server.close()
    })
    const [securePort, plainPort] = [await listening(secure), await listening(plain)]
    const { cert: root } = certificateFiles(authority)
    const tunnel = {
      proxy: { host: proxy.host },
      policies: {
        backendAuth: { key: { value: 'dTpw', location: { header: { name: 'x', prefix: 'Basic ' } } } },
      },
    }
    const over = (host: string, policies: object = {}) => ({
      host,
      policies: { backendTunnel: tunnel, ...policies },
    })
    const http2 = { http: { version: '2' } }
    const backendTLS = { root, hostname: 'localhost' }
    const service = await startAuthorizationService()
    const tcpPort = await freePort()
    const { port } = await routing(
      [
        { name: 'plain', ...at('/plain'), backends: [over(upstream.host)] },
        { name: 'h2c', ...at('/h2c'), backends: [over(`127.0.0.1:${plainPort}`, http2)] },
        { name: 'tls', ...at('/tls'), backends: [over(`127.0.0.1:${securePort}`, { backendTLS })] },
        { name: 'h2', ...at('/h2'), backends: [over(`127.0.0.1:${securePort}`, { backendTLS, ...http2 })] },
        {
          name: 'authorized',
          ...at('/authorized'),
          policies: { extAuthz: over(service.host) },
          backends: [{ host: upstream.host }],
        },
        {
          name: 'refused',
          ...at('/refused'),
          backends: [{ host: upstream.host, policies: { backendTunnel: { proxy: { host: proxy.host } } } }],
        },
      ],
      {
        gateways: { tcp: { port: tcpPort, protocol: 'TCP' } },
        tcpRoutes: [{ gateways: 'tcp', backends: [over(upstream.host)] }],
      },
    )
    for (const [path, text] of [
      ['/plain', 'up'],
      ['/h2c', 'h2c'],
      ['/tls', 'tls 1.1'],
      ['/h2', 'tls 2.0'],
    ] as const)
      expect(await call(port, path)).toMatchObject({ status: 200, text })
    expect((await call(tcpPort, '/')).text).toBe('up')
    expect((await call(port, '/authorized')).status).toBe(200)
    expect((await call(port, '/refused')).status).toBe(503)
    expect(proxy.connected).toEqual([
      upstream.host,
      ...[plainPort, securePort, securePort].map((one) => `127.0.0.1:${one}`),
      upstream.host,
      service.host,
    ])
  })
})

/** An HTTP proxy that requires a credential. */
async function startProxy(credential: string) {
  const connected: string[] = []
  const server = createServer((_, response) => response.writeHead(405).end())
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => {})
    if (request.headers['proxy-authorization'] !== credential) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
      return
    }
    connected.push(request.url ?? '')
    const [host = '', port = ''] = (request.url ?? '').split(':')
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(target).pipe(socket)
    })
    target.on('error', () => socket.destroy())
  })
  const port = await listening(server)
  endAfter('test', () => {
    server.closeAllConnections()
    server.close()
  })
  return { host: `127.0.0.1:${port}`, connected }
}

it('applies policies of backends to models and MCP servers', async () => {
  const openai = await mockOpenAi()
  const authorization = { rules: [{ deny: 'llmRequest.model == "secret"' }] }
  const mcpAuthorization = { rules: ['mcp.tool.name == "pid"'] }
  const gpt = {
    name: 'gpt',
    provider: { openAI: {} },
    hostOverride: `127.0.0.1:${openai.port}`,
    policies: { backendAuth: { key: openAiKey } },
  }
  const { port } = await routing(
    [
      { name: 'models', ...at('/v1'), backends: [{ ai: gpt, policies: { authorization } }] },
      { name: 'tools', ...at('/mcp'), backends: [{ backend: '/tools', policies: { mcpAuthorization } }] },
    ],
    { backends: [{ name: 'tools', mcp: { targets: [programTarget('one')] } }] },
  )
  const ask = (model: string) =>
    call(port, '/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
    })
  expect((await ask('gpt-test')).status).toBe(200)
  expect((await ask('secret')).status).toBe(403)
  const client = await connectClient('SDK 1', `http://127.0.0.1:${port}/mcp`)
  expect(await client.tools()).toEqual(['pid'])
})
