import { get } from 'node:http'
import { describe, expect, it } from 'vitest'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import {
  gatewayClass,
  gatewayOn,
  type Manifest,
  manifestFolder,
  own,
  route,
  service,
  settled,
} from '../support/manifests.ts'
import { startMockServer } from '../support/mock-server.ts'
import { otlpCollector } from '../support/otlp-collector.ts'
import { startRateLimitService } from '../support/rate-limit-service.ts'
import { createTokenIssuer } from '../support/token-issuer.ts'
import { until } from '../support/wait.ts'
import { mockWebhook } from '../support/webhook.ts'

const models: Manifest = {
  apiVersion: own,
  kind: 'GatewayBackend',
  metadata: { name: 'models' },
  spec: { ai: { provider: { echo: {} } } },
}
const toModels = { group: 'tollgate.dev', kind: 'GatewayBackend', name: 'models' }

function policy(name: string, target: string, spec: object): Manifest {
  const [kind, of] = target.split('/')
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind, name: of }]
  return { apiVersion: own, kind: 'GatewayPolicy', metadata: { name }, spec: { targetRefs, ...spec } }
}

function keys(entries: Record<string, string>): Manifest {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys' }, stringData: entries }
}

type World = ReturnType<typeof manifestFolder> & {
  readonly gateway: Gateway
  call(path: string, headers?: Record<string, string>): Promise<Response>
  chat(path: string, content: string, headers?: Record<string, string>): Promise<Response>
}

/** A Gateway with the LLM routes `/chat` and `/other`, the HTTP route `/shop`, and these manifests. */
async function world(...manifests: readonly Manifest[]): Promise<World> {
  const shop = await startMockServer((_request, response) => response.end('shop'))
  const [port = 0] = await freePorts(1)
  const files = manifestFolder()
  files.write('gateway.yaml', gatewayClass, gatewayOn(port))
  files.write('shop.yaml', route('shop', '/shop', { name: 'shop', port: 80 }), ...service('shop', shop))
  files.write('models.yaml', models, route('chat', '/chat', toModels), route('other', '/other', toModels))
  if (manifests.length > 0) files.write('policies.yaml', ...manifests)
  const gateway = await startGateway({}, { args: ['--manifests', files.folder] })
  const call = (path: string, headers = {}) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
  return {
    ...files,
    gateway,
    call,
    chat: (path, content, headers = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content }] }),
      }),
  }
}

const webhookGuard = (more: object = {}) => ({
  webhook: { backendRef: { kind: 'Service', name: 'guard', port: 80 }, ...more },
})

describe('a guard behind a Service', () => {
  it('guards its route with headers of the verified token', async () => {
    const webhook = await mockWebhook()
    const issuer = await createTokenIssuer('https://id.example.com', 'models')
    const providers = [{ issuer: issuer.issuer, audiences: ['models'], jwks: { inline: issuer.keys } }]
    const { chat, call } = await world(
      ...service('guard', webhook),
      policy('tokens', 'Gateway/web', { traffic: { jwtAuthentication: { providers } } }),
      policy('guard', 'HTTPRoute/chat', {
        backend: { ai: { promptGuard: { request: [webhookGuard({ headers: { 'x-user': 'jwt.sub' } })] } } },
      }),
    )
    expect((await chat('/chat', 'hello')).status).toBe(401)
    const headers = { authorization: `Bearer ${await issuer.token({ sub: 'ada' })}` }
    expect((await chat('/chat', 'hello', headers)).status).toBe(200)
    expect(webhook.seen[0]?.headers['x-user']).toBe('ada')
    const refused = await chat('/chat', 'please block this', headers)
    expect([refused.status, await refused.text()]).toEqual([403, 'request blocked'])
    expect((await chat('/other', 'please block this', headers)).status).toBe(200)
    expect((await call('/shop', headers)).status).toBe(200)
    expect((await call('/shop')).status).toBe(401)
  })

  it('refuses requests while its Service does not exist, whatever its modes', async () => {
    const webhook = await mockWebhook()
    const guard = webhookGuard({ failureMode: 'FailOpen', action: 'Audit' })
    const { chat, call, write, gateway } = await world(
      policy('guard', 'Gateway/web', { backend: { ai: { promptGuard: { request: [guard] } } } }),
    )
    const refused = await chat('/chat', 'hello')
    expect([refused.status, await refused.text()]).toEqual([
      503,
      'failed to process LLM request: prompt guard failed',
    ])
    expect((await call('/shop')).status).toBe(200)
    await settled(gateway, () => write('guard.yaml', ...service('guard', webhook)))
    expect((await chat('/chat', 'hello')).status).toBe(200)
    expect(webhook.seen).toHaveLength(1)
  })
})

describe('limits', () => {
  it('of tokens on a Gateway count all LLM routes in one bucket, and no HTTP route', async () => {
    const local = [{ tokens: 5, unit: 'Hours' }]
    const { chat, call } = await world(policy('budget', 'Gateway/web', { traffic: { rateLimit: { local } } }))
    expect((await chat('/chat', 'one two three four five six seven eight')).status).toBe(200)
    const refused = await chat('/other', 'hello')
    expect([refused.status, await refused.text()]).toEqual([429, 'rate limit exceeded'])
    expect((await call('/shop')).status).toBe(200)
  })

  it('of a Gateway and of a route both apply', async () => {
    const limit = (requests: number) => ({ traffic: { rateLimit: { local: [{ requests, unit: 'Hours' }] } } })
    const { call } = await world(
      policy('all', 'Gateway/web', limit(3)),
      policy('own', 'HTTPRoute/shop', limit(1)),
    )
    expect((await call('/shop')).status).toBe(200)
    expect((await call('/shop')).status).toBe(429)
    // A refused request consumes nothing of the other limit.
    expect((await call('/chat')).status).not.toBe(429)
    expect((await call('/chat')).status).not.toBe(429)
    expect((await call('/chat')).status).toBe(429)
  })

  it('count at a rate limit service behind a Service', async () => {
    const limiter = await startRateLimitService({ limits: { 'user=ada': 1 } })
    const global = {
      backendRef: { name: 'limiter', port: 80 },
      domain: 'test',
      descriptors: [{ entries: [{ name: 'user', expression: 'request.headers["x-user"]' }] }],
    }
    const [, port = ''] = limiter.host.split(':')
    const { call } = await world(
      ...service('limiter', { port: Number(port) }),
      policy('shared', 'HTTPRoute/shop', { traffic: { rateLimit: { global } } }),
    )
    const headers = { 'x-user': 'ada' }
    expect((await call('/shop', headers)).status).toBe(200)
    expect((await call('/shop', headers)).status).toBe(429)
    expect(limiter.seen[0]).toMatchObject({ domain: 'test' })
  })

  it('refuse requests while their rate limit service does not exist, whatever its failureMode', async () => {
    const global = {
      backendRef: { name: 'limiter', port: 80 },
      domain: 'test',
      failureMode: 'FailOpen',
      descriptors: [{ entries: [{ name: 'path', expression: 'request.path' }] }],
    }
    const { call } = await world(policy('shared', 'HTTPRoute/shop', { traffic: { rateLimit: { global } } }))
    const refused = await call('/shop')
    expect([refused.status, await refused.text()]).toEqual([500, 'rate limit failed'])
    expect((await call('/chat')).status).not.toBe(500)
  })
})

describe('keys of Secrets', () => {
  it('authenticate clients, and follow changes of the Secret', async () => {
    const apiKeyAuthentication = { secretRef: { name: 'keys' } }
    const authorization = { matchExpressions: ['apiKey.name == "ada" || apiKey.group == "search"'] }
    const record = JSON.stringify({ key: 'tg-bob-1', metadata: { group: 'search' } })
    const { call, write, gateway } = await world(
      keys({ ada: 'tg-ada-1', bob: record, eve: 'tg-eve-1' }),
      policy('keys', 'HTTPRoute/shop', { traffic: { apiKeyAuthentication, authorization } }),
    )
    const status = async (key: string) =>
      (await call('/shop', key === '' ? {} : { authorization: `Bearer ${key}` })).status
    expect(await Promise.all(['', 'tg-ada-1', 'tg-bob-1', 'tg-eve-1', 'tg-ian-1'].map(status))).toEqual([
      401, 200, 200, 403, 401,
    ])
    const effective = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/config/effective`)
    expect(await effective.text()).not.toMatch(/tg-(?:ada|bob|eve)-1/)
    await settled(gateway, () =>
      write(
        'policies.yaml',
        keys({ ada: 'tg-ada-2' }),
        policy('keys', 'HTTPRoute/shop', { traffic: { apiKeyAuthentication, authorization } }),
      ),
    )
    expect(await Promise.all(['tg-ada-1', 'tg-ada-2', 'tg-bob-1'].map(status))).toEqual([401, 200, 401])
  })

  it('admit no client while the Secret is missing', async () => {
    const { call } = await world(
      policy('keys', 'HTTPRoute/shop', {
        traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' }, mode: 'Permissive' } },
      }),
    )
    expect((await call('/shop')).status).toBe(500)
    expect((await call('/chat')).status).not.toBe(500)
  })
})

describe('an invalid policy', () => {
  it('refuses the requests of its target and no others', async () => {
    const { call } = await world(
      policy('rules', 'HTTPRoute/shop', { traffic: { authorization: { matchExpressions: ['jwt.sub =='] } } }),
    )
    const refused = await call('/shop')
    expect(refused.status).toBe(500)
    expect(await refused.text()).not.toContain('jwt')
    expect((await call('/chat')).status).not.toBe(500)
  })
})

describe('services and transformations', () => {
  it('decide on the requests of their conditions, and refuse without their Service', async () => {
    const authorizer = await startMockServer((request, response) => {
      response.writeHead(request.headers['x-user'] === 'ada' ? 200 : 403, { 'x-auth-user': 'ada' }).end()
    })
    const backendRef = { name: 'authorizer', port: 80 }
    const responseMetadata = { user: 'response.headers["x-auth-user"]' }
    const http = { allowedRequestHeaders: ['x-user'], responseMetadata }
    const onShop = { condition: 'request.path == "/shop"', policy: { backendRef, http } }
    const { call, write, gateway } = await world(
      ...service('authorizer', authorizer),
      policy('access', 'Gateway/web', {
        traffic: {
          extAuth: { conditional: [onShop] },
          transformation: { response: { set: [{ name: 'x-user', value: 'extAuthz.user' }] } },
          directResponse: {
            conditional: [{ condition: 'request.path == "/other"', policy: { status: 418 } }],
          },
        },
      }),
    )
    expect((await call('/shop')).status).toBe(403)
    const permitted = await call('/shop', { 'x-user': 'ada' })
    expect([permitted.status, await permitted.text()]).toEqual([200, 'shop'])
    expect(permitted.headers.get('x-user')).toBe('ada')
    expect((await call('/other')).status).toBe(418)
    const policyOf = { ...onShop.policy, backendRef: { name: 'absent', port: 80 }, failureMode: 'FailOpen' }
    await settled(gateway, () =>
      write(
        'policies.yaml',
        policy('access', 'Gateway/web', { traffic: { extAuth: { conditional: [{ policy: policyOf }] } } }),
      ),
    )
    expect((await call('/shop', { 'x-user': 'ada' })).status).toBe(403)
  })
})

function onNewConnection(url: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, resolve).on('error', reject)
  })
}

describe('settings of a Gateway', () => {
  it('export traces and records to a Service, and close connections by network rules', async () => {
    const collector = await otlpCollector()
    const portOf = (address: string) => ({ port: Number(address.split(':').at(-1)) })
    const attributes = { add: [{ name: 'team', expression: 'request.headers["x-team"]' }] }
    const telemetry = {
      accessLog: { otlp: { backendRef: { name: 'logs', port: 80 }, protocol: 'HTTP', attributes } },
      tracing: { backendRef: { name: 'traces', port: 80 }, randomSampling: 'true', attributes },
    }
    const { call, write, gateway } = await world(
      ...service('logs', portOf(collector.http)),
      ...service('traces', portOf(collector.grpc)),
      policy('web', 'Gateway/web', { frontend: telemetry }),
    )
    const permitted = await call('/shop', { 'x-team': 'search' })
    expect(permitted.status).toBe(200)
    const spans = await collector.received(1)
    expect(spans.some((span) => span.attributes['team'] === 'search')).toBe(true)
    await until('a record', () => collector.logs.length > 0)
    expect(collector.violations).toEqual([])
    const rules = { action: 'Deny', matchExpressions: ['source.address.startsWith("127.")'] }
    await settled(gateway, () =>
      write('policies.yaml', policy('web', 'Gateway/web', { frontend: { networkAuthorization: rules } })),
    )
    await expect(onNewConnection(permitted.url)).rejects.toThrow(/hang up|ECONNRESET/)
  })
})
