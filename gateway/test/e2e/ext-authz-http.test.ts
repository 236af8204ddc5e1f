import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  forbidden,
  startAuthorizationService,
  startHttpAuthorizer,
} from '../support/authorization-service.ts'
import { endAfter } from '../support/cleanup.ts'
import { startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { aliceKey, jsonHeaders, llmConfig } from '../support/llm-config.ts'
import type { MockServer } from '../support/mock-server.ts'
import { namedUpstream, routingConfig, sharedRouting } from '../support/traffic.ts'

let upstream: MockServer & { host: string }
const routing = sharedRouting()

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
})

/** Forwards connections of a Unix domain socket, and returns its address. */
async function socketTo(host: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-socket-'))
  const path = join(folder, 'authz.sock')
  const server = createServer((socket) => {
    const target = connect(Number(host.split(':')[1]), '127.0.0.1')
    socket.pipe(target).pipe(socket)
    for (const end of [socket, target]) end.on('error', () => {})
  }).listen(path)
  await once(server, 'listening')
  endAfter('test', () => {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return `unix:${path}`
}

function route(extAuthz: object, policies: object = {}) {
  return { name: 'api', policies: { ...policies, extAuthz }, backends: [{ host: upstream.host }] }
}

describe('external authorization over HTTP', () => {
  it('calls services at Unix domain sockets, with both protocols', async () => {
    const overHttp = await startHttpAuthorizer((_, response) => response.end())
    const overGrpc = await startAuthorizationService(() => forbidden)
    const { port, gateway } = await routing([
      route({ host: await socketTo(overHttp.host), protocol: { http: {} } }),
    ])
    expect((await call(port, '/a')).status).toBe(200)
    expect(overHttp.seen[0]?.headers['host']).toBe('localhost')
    const grpc = route({ host: await socketTo(overGrpc.host) })
    await gateway.reload(routingConfig(port, [grpc]))
    expect((await call(port, '/a')).status).toBe(403)
    expect(overGrpc.seen).toHaveLength(1)
    const missing = route({ host: 'unix:/nonexistent.sock' })
    await gateway.reload(routingConfig(port, [missing]))
    expect((await call(port, '/a')).status).toBe(403)
  })

  it('sends the path and the authorization header, and forwards on 2xx', async () => {
    const service = await startHttpAuthorizer((_, response) => response.end('fine'))
    const { port } = await routing([route({ host: service.host, protocol: { http: {} } })])
    const headers = { authorization: 'Basic abc', 'x-other': 'b' }
    for (let index = 0; index < 3; index += 1)
      expect((await call(port, '/a?b=c', { method: 'POST', headers, body: 'text' })).status).toBe(200)
    expect(service.seen[0]).toMatchObject({ method: 'POST', path: '/a?b=c', body: '' })
    expect(service.seen[0]?.headers).toMatchObject({ authorization: 'Basic abc' })
    expect(service.seen[0]?.headers).not.toHaveProperty('x-other')
    expect(service.connections).toBe(1)
  })

  it('discards the rest of a body after a denial, and the connection continues', async () => {
    const service = await startHttpAuthorizer((_, response) => {
      response.statusCode = 403
      response.end()
    })
    const includeRequestBody = { maxRequestBytes: 4, allowPartialMessage: true }
    const { port } = await routing([
      route({ host: service.host, protocol: { http: {} }, includeRequestBody }),
    ])
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ports = new Set<number | undefined>()
    for (let index = 0; index < 2; index += 1) {
      const sent = request({ port, host: '127.0.0.1', agent, method: 'POST', path: '/' })
      sent.end(Buffer.alloc(3_000_000))
      const [response]: IncomingMessage[] = await once(sent, 'response')
      ports.add(response?.socket.localPort)
      expect(response?.statusCode).toBe(403)
      response?.resume()
      if (response) await once(response, 'end')
      if (!sent.writableFinished) await once(sent, 'finish')
    }
    agent.destroy()
    expect(ports.size).toBe(1)
  })

  it('computes path, headers, method and body by expressions', async () => {
    const service = await startHttpAuthorizer((_, response) => response.end())
    const http = {
      path: '"/check?from=" + source.address',
      body: '{"path": request.path}',
      addRequestHeaders: {
        ':method': '"PUT"',
        ':authority': '"authz.test"',
        'x-path': 'request.path',
        'x-none': 'jwt.sub',
      },
    }
    const { port } = await routing([
      route({ host: service.host, protocol: { http }, includeRequestHeaders: ['cookie'] }),
    ])
    expect((await call(port, '/a', { headers: { cookie: 'a=1', authorization: 'x' } })).status).toBe(200)
    const [check] = service.seen
    expect(check).toMatchObject({ method: 'PUT', path: '/check?from=127.0.0.1', body: '{"path":"/a"}' })
    expect(check?.headers).toMatchObject({ host: 'authz.test', 'x-path': '/a', cookie: 'a=1' })
    for (const absent of ['authorization', 'x-none']) expect(check?.headers).not.toHaveProperty(absent)
  })

  it('copies response headers to the request in place of those of the client', async () => {
    const service = await startHttpAuthorizer(({ headers }, response) => {
      if (headers.authorization === 'yes') response.setHeader('x-user', 'ada')
      response.end()
    })
    const http = { includeResponseHeaders: ['X-User'] }
    const { port } = await routing([route({ host: service.host, protocol: { http } })])
    await call(port, '/', { headers: { authorization: 'yes', 'x-user': 'mallory' } })
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-user': 'ada' })
    await call(port, '/', { headers: { authorization: 'no', 'x-user': 'mallory' } })
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('x-user')
  })

  it('provides metadata of the response to rules', async () => {
    const service = await startHttpAuthorizer(({ path }, response) => {
      response.setHeader('x-group', path === '/admin' ? 'admins' : 'users')
      response.end('{"user": {"name": "ada"}}')
    })
    const http = {
      metadata: {
        group: 'response.headers["x-group"]',
        code: 'response.code',
        none: 'response.headers["no"]',
      },
    }
    const rules = ['extauthz.group == "admins" && extAuthz.code == 200 && !has(extAuthz.none)']
    const { port } = await routing([
      route({ host: service.host, protocol: { http } }, { authorization: { rules } }),
    ])
    expect((await call(port, '/admin')).status).toBe(200)
    expect((await call(port, '/other')).status).toBe(403)
  })

  it('returns the refusal of the service, or redirects', async () => {
    const service = await startHttpAuthorizer(({ path }, response) => {
      response.writeHead(path === '/limited' ? 429 : 401, { 'www-authenticate': 'Basic', 'x-why': 'none' })
      response.end('log in first')
    })
    const target = { host: service.host }
    const { port } = await routing([route({ ...target, protocol: { http: {} } })])
    const refused = await call(port, '/')
    expect([refused.status, refused.text, refused.headers['x-why']]).toEqual([401, 'log in first', 'none'])
    const http = { redirect: '"/login?rd=" + request.path' }
    const next = await routing([route({ ...target, protocol: { http } })])
    const redirected = await call(next.port, '/a')
    expect([redirected.status, redirected.headers.location]).toEqual([302, '/login?rd=/a'])
    expect((await call(next.port, '/limited')).status).toBe(429)
  })

  it('includes bodies up to a limit', async () => {
    const service = await startHttpAuthorizer((_, response) => response.end())
    const includeRequestBody = { maxRequestBytes: 4, allowPartialMessage: true }
    const { port } = await routing([
      route({ host: service.host, protocol: { http: {} }, includeRequestBody }),
    ])
    for (const body of ['abc', 'abcdefgh'])
      expect((await call(port, '/', { method: 'POST', body })).status).toBe(200)
    expect(service.seen.map(({ body, headers }) => [body, headers['x-envoy-auth-partial-body']])).toEqual([
      ['abc', 'false'],
      ['abcd', 'true'],
    ])
    expect(upstream.seen.at(-1)?.text).toBe('abcdefgh')
  })

  it.each([
    ['an error status', 503],
    ['a closed connection', 0],
    ['a large response', 200],
    ['an interrupted response', 201],
  ])('denies on %s, or follows the failure mode', async (_, status) => {
    const service = await startHttpAuthorizer((_check, response) => {
      if (status === 0) response.destroy()
      else if (status === 503) response.writeHead(503).end('secret detail')
      else if (status === 201) {
        response.writeHead(200, { 'content-length': '10' })
        response.write('abc', () => response.destroy())
      } else response.end(Buffer.alloc(100_000))
    })
    const target = { host: service.host, protocol: { http: {} } }
    const { port } = await routing([route(target)])
    const denied = await call(port, '/')
    expect([denied.status, denied.text]).toEqual([403, 'external authorization failed'])
    const open = await routing([route({ ...target, failureMode: 'allow' })])
    expect((await call(open.port, '/')).status).toBe(200)
  })

  it('refuses a request without a valid path of the check, whatever the failure mode', async () => {
    const service = await startHttpAuthorizer((_, response) => response.end())
    const http = { path: '"/check " + request.headers["x-part"]' }
    const { port } = await routing([route({ host: service.host, protocol: { http }, failureMode: 'allow' })])
    expect((await call(port, '/')).status).toBe(403)
    expect((await call(port, '/', { headers: { 'x-part': 'a b' } })).status).toBe(403)
    expect(service.seen).toEqual([])
  })

  it('caches refusals with 401 and 403 only', async () => {
    const service = await startHttpAuthorizer(({ path }, response) => {
      response.writeHead(Number(path.slice(1))).end()
    })
    const cache = { key: ['request.path'], ttl: 'duration("60s")' }
    const { port } = await routing([route({ host: service.host, protocol: { http: {} }, cache })])
    for (const path of ['/401', '/401', '/404', '/404', '/200', '/200'])
      expect((await call(port, path)).status).toBe(Number(path.slice(1)))
    expect(service.seen.map(({ path }) => path)).toEqual(['/401', '/404', '/404', '/200'])
  })
})

describe('variants', () => {
  it('select a service by conditions', async () => {
    const strict = await startHttpAuthorizer((_, response) => response.writeHead(403).end('strict'))
    const other = await startAuthorizationService()
    const conditional = [
      { condition: 'request.path.startsWith("/admin")', host: strict.host, protocol: { http: {} } },
      { host: other.host },
    ]
    const { port } = await routing([route({ conditional })])
    expect((await call(port, '/admin')).text).toBe('strict')
    expect((await call(port, '/')).status).toBe(200)
    expect([strict.seen.length, other.seen.length]).toEqual([1, 1])
  })
})

describe('places', () => {
  it('apply to models, before the body is read by the gateway', async () => {
    const service = await startAuthorizationService(({ request }) =>
      request.http.body?.includes('forbidden') === true ? { status: { code: 7 } } : { status: { code: 0 } },
    )
    const extAuthz = { host: service.host, includeRequestBody: { maxRequestBytes: 100_000 } }
    const gateway = await startGateway(llmConfig({}, { policies: { extAuthz } }))
    const chat = (content: string) =>
      call(gateway.port, '/v1/chat/completions', {
        method: 'POST',
        headers: jsonHeaders,
        body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content }] }),
      })
    expect((await chat('forbidden words')).status).toBe(403)
    expect((await chat('hello')).status).toBe(200)
    expect(service.seen).toHaveLength(2)
    expect(JSON.stringify(service.seen)).not.toContain(aliceKey)
  })
})
