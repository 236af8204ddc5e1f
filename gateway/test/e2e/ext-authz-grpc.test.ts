import { beforeAll, describe, expect, it } from 'vitest'
import {
  type AuthorizationService,
  forbidden,
  permitted,
  setHeader,
  startAuthorizationService,
  structOf,
  unavailable,
} from '../support/authorization-service.ts'
import { call, http2Client } from '../support/http-call.ts'
import type { MockServer } from '../support/mock-server.ts'
import { createTokenIssuer } from '../support/token-issuer.ts'
import { namedUpstream, sharedRouting } from '../support/traffic.ts'

let upstream: MockServer & { host: string }
const routing = sharedRouting()

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
})

function route(service: { host: string }, more: object = {}, policies: object = {}) {
  const extAuthz = { host: service.host, ...more }
  return { name: 'api', policies: { ...policies, extAuthz }, backends: [{ host: upstream.host }] }
}

async function start(decide?: AuthorizationService['decide'], more: object = {}, policies: object = {}) {
  const service = await startAuthorizationService(decide)
  const running = await routing([route(service, more, policies)])
  return { service, ...running }
}

describe('external authorization over gRPC', () => {
  it('describes the request to the service', async () => {
    const { service, port } = await start(undefined, { protocol: { grpc: { context: { tenant: 'a' } } } })
    const headers = { 'x-team': ['a', 'b'].join(', '), 'x-forwarded-for': '9.9.9.9', cookie: 'a=1' }
    const { status } = await call(port, '/v1/items?limit=2', { headers })
    expect(status).toBe(200)
    const [check] = service.seen
    expect(check?.request.http).toMatchObject({
      method: 'GET',
      path: '/v1/items?limit=2',
      host: `127.0.0.1:${port}`,
      scheme: 'http',
      protocol: 'HTTP/1.1',
    })
    expect(check?.request.http.headers).toMatchObject({
      ':method': 'GET',
      ':path': '/v1/items?limit=2',
      ':authority': `127.0.0.1:${port}`,
      ':scheme': 'http',
      'x-team': 'a, b',
      // The client cannot state another address.
      'x-forwarded-for': '127.0.0.1',
      cookie: 'a=1',
    })
    expect(check?.source?.address.socketAddress).toMatchObject({ address: '127.0.0.1' })
    expect(check?.destination?.address.socketAddress).toEqual({ address: '127.0.0.1', portValue: port })
    expect(Number(check?.request.time?.seconds)).toBeGreaterThan(1_600_000_000)
    expect(check?.contextExtensions).toEqual({ tenant: 'a' })
  })

  it('reports HTTP/2', async () => {
    const { service, port } = await start()
    const client = http2Client(port)
    const { status } = await client.ask('/two')
    expect([status, service.seen[0]?.request.http.protocol]).toEqual([200, 'HTTP/2'])
  })

  it('sends the claims of a token, but not the token', async () => {
    const issuer = await createTokenIssuer('https://one.test', 'app')
    const { service, port } = await start(
      undefined,
      {},
      {
        jwtAuth: { issuer: issuer.issuer, audiences: ['app'], jwks: issuer.keys },
      },
    )
    const token = await issuer.token({ role: 'editor', scores: [1, 2.5], nested: { on: true, none: null } })
    const { status } = await call(port, '/', { headers: { authorization: `Bearer ${token}` } })
    expect(status).toBe(200)
    expect(JSON.stringify(service.seen)).not.toContain(token)
    const { filterMetadata = {} } = service.seen[0]?.metadataContext ?? {}
    expect(filterMetadata['envoy.filters.http.jwt_authn']).toMatchObject({
      fields: {
        jwt_payload: {
          structValue: {
            fields: {
              role: { stringValue: 'editor' },
              scores: { listValue: { values: [{ numberValue: 1 }, { numberValue: 2.5 }] } },
              nested: { structValue: { fields: { on: { boolValue: true }, none: {} } } },
            },
          },
        },
      },
    })
  })

  it('sends metadata by expression, and only the included headers', async () => {
    const { service, port } = await start(undefined, {
      includeRequestHeaders: ['x-team', ':path'],
      protocol: { grpc: { metadata: { 'dev.test': '{"path": request.path}', none: '{"claims": jwt}' } } },
    })
    await call(port, '/a', { headers: { 'x-team': 'a', 'x-other': 'b' } })
    expect(service.seen[0]?.request.http.headers).toEqual({ 'x-team': 'a', ':path': '/a' })
    expect(service.seen[0]?.metadataContext?.filterMetadata).toEqual({
      'dev.test': { fields: { path: { stringValue: '/a' } } },
    })
  })

  it('applies the changes of a permitting response', async () => {
    const { port } = await start(() => ({
      ...permitted,
      okResponse: {
        headers: [
          setHeader('X-User', 'ada'),
          setHeader('x-list', 'c', { append: { value: true } }),
          setHeader('x-kept', 'new', { appendAction: 1 }),
          setHeader('x-none', 'new', { appendAction: 3 }),
          setHeader('content-length', '999'),
        ],
        headersToRemove: ['x-secret', 'host'],
        responseHeadersToAdd: [setHeader('x-decided-by', 'service')],
        queryParametersToSet: [{ key: 'tenant', value: 'a b' }],
        queryParametersToRemove: ['debug'],
      },
    }))
    const answer = await call(port, '/x?debug=1&q=%20z', {
      headers: { 'x-user': 'mallory', 'x-list': 'a', 'x-kept': 'old', 'x-secret': 's' },
    })
    expect(answer.status).toBe(200)
    expect(answer.headers['x-decided-by']).toBe('service')
    const seen = upstream.seen.at(-1)
    expect(seen?.path).toBe('/x?q=%20z&tenant=a%20b')
    expect(seen?.headers).toMatchObject({ 'x-user': 'ada', 'x-list': 'a,c', 'x-kept': 'old' })
    expect(seen?.headers).not.toHaveProperty('x-secret')
    expect(seen?.headers).not.toHaveProperty('x-none')
  })

  it('returns the response of a refusal, without framing fields', async () => {
    const { gateway, port } = await start(() => ({
      ...forbidden,
      deniedResponse: {
        status: { code: 401 },
        headers: [
          setHeader('www-authenticate', 'Basic'),
          setHeader('transfer-encoding', 'chunked'),
          setHeader('set-cookie', 'a=1', { append: { value: true } }),
          setHeader('set-cookie', 'b=2', { append: { value: true } }),
        ],
        body: 'who are you',
      },
    }))
    const before = upstream.seen.length
    const lines = gateway.requests().length
    const answer = await call(port, '/')
    expect([answer.status, answer.text]).toEqual([401, 'who are you'])
    expect(answer.headers).toMatchObject({ 'www-authenticate': 'Basic', 'set-cookie': ['a=1', 'b=2'] })
    expect(upstream.seen.length).toBe(before)
    const line = (await gateway.logged(lines + 1)).at(-1)
    expect(line?.['refusedBy']).toBe('ext-authz: route api')
    expect(await gateway.metrics()).toMatch(
      /tollgate_ext_authz_checks_total\{policy="route api",outcome="denied",from="service"\} \d/,
    )
  })

  it('refuses with 403 without a response of the service', async () => {
    const { port } = await start(() => forbidden)
    const answer = await call(port, '/')
    expect([answer.status, answer.text]).toEqual([403, 'external authorization failed'])
  })

  it('provides metadata of the service to rules, in both spellings', async () => {
    const { port } = await start(
      ({ request }) => ({
        ...permitted,
        dynamicMetadata: structOf({ role: request.http.headers['x-role'] ?? '', limits: [1] }),
      }),
      {},
      { authorization: { rules: ['extAuthz.role == "admin" && extauthz.limits[0] == 1.0'] } },
    )
    expect((await call(port, '/', { headers: { 'x-role': 'admin' } })).status).toBe(200)
    expect((await call(port, '/', { headers: { 'x-role': 'user' } })).status).toBe(403)
  })

  it('decides after credentials and before limits', async () => {
    const { service, port } = await start(
      undefined,
      {},
      {
        apiKey: { keys: [{ key: 'key-1' }] },
        localRateLimit: [{ requests: 1, unit: 'Hours' }],
      },
    )
    expect((await call(port, '/')).status).toBe(401)
    expect(service.seen).toHaveLength(0)
    service.decide = () => forbidden
    const headers = { 'x-api-key': 'key-1' }
    expect((await call(port, '/', { headers })).status).toBe(403)
    service.decide = () => permitted
    expect((await call(port, '/', { headers })).status).toBe(200)
    expect((await call(port, '/', { headers })).status).toBe(429)
    expect(JSON.stringify(service.seen)).not.toContain('key-1')
  })

  it('checks each path that a server may derive', async () => {
    const { service, port } = await start(({ request }) =>
      request.http.path.includes('..') || request.http.path === '/a/b' ? forbidden : permitted,
    )
    expect((await call(port, '/a%2fb')).status).toBe(403)
    expect(service.seen.map(({ request }) => request.http.path)).toEqual(['/a/b'])
  })
})

describe('bodies', () => {
  it('includes the body, and forwards it unchanged', async () => {
    const { service, port } = await start(undefined, { includeRequestBody: {} })
    const body = 'é'.repeat(2_000)
    expect((await call(port, '/', { method: 'POST', body })).status).toBe(200)
    expect(service.seen[0]?.request.http).toMatchObject({ body, size: '4000' })
    expect(upstream.seen.at(-1)?.text).toBe(body)
  })

  it('refuses larger bodies, or includes their beginning', async () => {
    const limits = { maxRequestBytes: 10 }
    const { service, port } = await start(undefined, { includeRequestBody: limits })
    const body = 'x'.repeat(100_000)
    expect((await call(port, '/', { method: 'POST', body })).status).toBe(413)
    expect(service.seen).toHaveLength(0)
    const partial = { ...limits, allowPartialMessage: true, packAsBytes: true }
    const next = await start(undefined, { includeRequestBody: partial })
    expect((await call(next.port, '/', { method: 'POST', body })).status).toBe(200)
    expect(next.service.seen[0]?.request.http).toMatchObject({
      rawBody: Buffer.from('x'.repeat(10)).toString('base64'),
      size: '100000',
    })
    expect(upstream.seen.at(-1)?.text).toBe(body)
  })
})

describe('failures of the service', () => {
  const failures: Record<string, (service: AuthorizationService) => unknown> = {
    unavailable: (service) => service.stop(),
    'an error status': (service) => {
      service.decide = () => {
        throw unavailable()
      }
    },
    'an empty message': (service) => {
      service.raw = Buffer.alloc(0)
    },
    garbage: (service) => {
      service.raw = Buffer.from([0x12, 0x7f])
    },
    'a huge message': (service) => {
      service.raw = Buffer.alloc(200_000, 1)
    },
    'a header with a line break': (service) => {
      service.decide = () => ({ ...permitted, okResponse: { headers: [setHeader('x-a', 'b\r\nx-c: d')] } })
    },
    'an invalid header name': (service) => {
      service.decide = () => ({ ...permitted, okResponse: { headers: [setHeader('x a', 'b')] } })
    },
    'no response in time': (service) => {
      service.decide = () => new Promise(() => {})
    },
  }

  it.each(Object.keys(failures))('deny requests, or follow the failure mode: %s', async (name) => {
    const policies = { http: { requestTimeout: '200ms' } }
    const { service, port } = await start(undefined, { policies })
    await failures[name]?.(service)
    const before = upstream.seen.length
    const denied = await call(port, '/')
    expect([denied.status, denied.text]).toEqual([403, 'external authorization failed'])
    expect(upstream.seen.length).toBe(before)
    await routing([route(service, { policies, failureMode: { denyWithStatus: 503 } })])
    expect((await call(port, '/')).status).toBe(503)
    const open = await routing([route(service, { policies, failureMode: 'allow' })])
    expect((await call(open.port, '/')).status).toBe(200)
    expect(await open.gateway.metrics()).toContain('outcome="failed_open"')
  })

  it('end with the service: it answers again on the same route', async () => {
    const { service, port } = await start()
    expect((await call(port, '/')).status).toBe(200)
    await service.stop()
    expect((await call(port, '/')).status).toBe(403)
    await service.start()
    await expect.poll(async () => (await call(port, '/')).status, { timeout: 10_000 }).toBe(200)
  })

  it('do not include closed connections: checks continue on the next one', async () => {
    const { service, port } = await start()
    const statuses: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => call(port, '/')))
      statuses.push(...answers.map(({ status }) => status))
      service.retire()
    }
    expect(statuses.filter((status) => status !== 200)).toEqual([])
  })
})

describe('checks under load', () => {
  it('share one connection', async () => {
    const { service, port } = await start()
    const answers = await Promise.all(Array.from({ length: 60 }, () => call(port, '/')))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(service.connections).toBe(1)
  })

  it('decide each request by one configuration during reloads', async () => {
    const [allows, denies] = [
      await startAuthorizationService(),
      await startAuthorizationService(() => forbidden),
    ]
    const { port } = await routing([route(allows)])
    let isOver = false
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        const statuses = new Set<number>()
        while (!isOver) statuses.add((await call(port, '/')).status)
        return statuses
      }),
    )
    for (let round = 0; round < 3; round += 1) {
      await routing([route(denies)])
      await routing([route(allows)])
    }
    isOver = true
    for (const statuses of await load) for (const status of statuses) expect([200, 403]).toContain(status)
    expect((await call(port, '/')).status).toBe(200)
  })
})

describe('the cache', () => {
  const cache = { key: ['request.headers["x-user"]'], ttl: '1m', maxEntries: 10 }
  const as = (user: string) => ({ headers: { 'x-user': user } })

  it('reuses decisions of equal keys, with their changes', async () => {
    const { service, gateway, port } = await start(
      ({ request }) =>
        request.http.headers['x-user'] === 'eve'
          ? forbidden
          : { ...permitted, okResponse: { headers: [setHeader('x-seen', 'yes')] } },
      { cache },
    )
    for (let index = 0; index < 3; index += 1) {
      expect((await call(port, '/', as('ada'))).status).toBe(200)
      expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'x-seen': 'yes' })
      expect((await call(port, '/', as('eve'))).status).toBe(403)
    }
    expect(service.seen).toHaveLength(2)
    expect(await gateway.metrics()).toContain('outcome="allowed",from="cache"')
    // No value of the key: not cached.
    await call(port, '/')
    await call(port, '/')
    expect(service.seen).toHaveLength(4)
  })

  it('asks once for concurrent requests, and again after an error', async () => {
    let release = () => {}
    const waiting = new Promise<void>((resolve) => {
      release = resolve
    })
    const { service, port } = await start(
      async () => {
        await waiting
        return permitted
      },
      { cache },
    )
    const answers = Array.from({ length: 10 }, () => call(port, '/', as('ada')))
    await expect.poll(() => service.seen.length).toBe(1)
    release()
    expect((await Promise.all(answers)).every(({ status }) => status === 200)).toBe(true)
    expect(service.seen).toHaveLength(1)
    service.decide = () => {
      throw unavailable()
    }
    expect((await call(port, '/', as('bob'))).status).toBe(403)
    service.decide = () => permitted
    expect((await call(port, '/', as('bob'))).status).toBe(200)
  })

  it('expires by an expression over the metadata of the service', async () => {
    const { service, port } = await start(
      ({ request }) => ({
        ...permitted,
        dynamicMetadata: structOf({ expires: request.http.path === '/long' ? Date.now() / 1000 + 60 : 5 }),
      }),
      { cache: { key: ['request.path'], ttl: 'extauthz.expires' } },
    )
    for (const path of ['/long', '/long', '/past', '/past']) await call(port, path)
    expect(service.seen.map(({ request }) => request.http.path)).toEqual(['/long', '/past', '/past'])
  })
})
