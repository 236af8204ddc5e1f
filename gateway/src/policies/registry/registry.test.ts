import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { audience, issuer, keySetOf, signingPair, signToken, throughAll } from '../../../test/fixtures/jwt.ts'
import { fixtureContext, fixtureExchange, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { webhookLimits } from '../guardrails/kinds/webhook/limits.ts'
import { compilePolicies, order, type RouteKind } from './registry.ts'
import type { PoliciesConfig } from './schema.ts'
import type { PolicyScope } from './scope.ts'

const llmRequest = { name: 'llm request' }
const reach = { isLoopback: false, isAllowedHost: () => false }
const llm: RouteKind = { kind: 'llm', maxBodyBytes: 1_000, llmRequest, reach }
const http: RouteKind = { kind: 'http', maxBodyBytes: 1024 }
const mcp: RouteKind = { kind: 'mcp', maxBodyBytes: 1_000, reach, webhooks: webhookLimits({}) }

const everything: PoliciesConfig = {
  cors: { allowOrigins: ['https://chat.example.com'] },
  apiKey: { keys: [{ key: 'k', metadata: { group: 'platform' } }] },
  authorization: { rules: [{ require: 'apiKey.group == "platform"' }, { deny: 'llmRequest.model == "x"' }] },
  localRateLimit: [
    { requests: 1, unit: 'Minutes' },
    { tokens: 10, unit: 'Minutes' },
  ],
}

function compile(route: RouteKind, ...policies: PoliciesConfig[]) {
  const scopes = policies.map((config, index): PolicyScope => ({ name: `scope ${index}`, policies: config }))
  return compilePolicies(scopes, fixtureContext(), route).policies
}

function namesOf(route: RouteKind, ...policies: PoliciesConfig[]): string[] {
  return compile(route, ...policies).map((policy) => policy.name)
}

function status(policies: ReturnType<typeof compile>, exchange: Exchange): number {
  return throughPolicies(policies, exchange).status
}

it('checks of connections are the same objects until their configuration changes', () => {
  const policies: PoliciesConfig = { extAuthz: { host: 'localhost:9000', protocol: { http: {} } } }
  const context = fixtureContext()
  const checks = (config: PoliciesConfig) =>
    compilePolicies([{ name: 'llm', policies: config }], context, llm).policies.filter(
      ({ isOfConnections }) => isOfConnections === true,
    )
  const [first] = checks(policies)
  expect(first?.name).toBe('external authorization')
  expect(checks(policies)[0]).toBe(first)
  expect(checks({ ...policies })[0]).not.toBe(first)
})

describe('the order of policies', () => {
  const place = (step: string) => order.findIndex((entry) => entry.step === step)

  it('has a reason for each step', () => {
    for (const { because } of order) expect(because).not.toBe('')
  })

  it('authenticates before rules and limits', () => {
    for (const known of ['tokens', 'apiKey']) {
      expect(place(known)).toBeGreaterThan(place('cors'))
      expect(place(known)).toBeLessThan(place('authorization'))
    }
    expect(place('authorization')).toBeLessThan(place('requestLimits'))
    expect(place('requestLimits')).toBeLessThan(place('llmRequest'))
    expect(place('documents')).toBe(0)
  })
})

describe('policies that name request.body', () => {
  const byBody: PoliciesConfig = {
    authorization: { rules: [{ deny: 'request.method == "PUT"' }, { deny: 'size(request.body) > 3' }] },
    localRateLimit: [
      { requests: 5, unit: 'Minutes' },
      { requests: 1, unit: 'Minutes', key: 'request.body' },
    ],
    directResponse: { status: 200 },
  }

  it('run after the body is read, the others before', () => {
    expect(namesOf(http, {}, byBody)).toEqual([
      'authorization',
      'request limits',
      'request body',
      'authorization of the body',
      'request limits after the body',
      'direct response',
    ])
  })

  it('run after the request of an LLM route', () => {
    expect(namesOf(llm, { authorization: byBody.authorization })).toEqual([
      'origin',
      'authorization',
      'llm request',
      'authorization of the LLM request',
    ])
  })

  it('are the only reason to read a body', () => {
    const others: PoliciesConfig = {
      authorization: { rules: ['request.path == "/" && request.headers.body == ""'] },
      localRateLimit: [{ requests: 5, unit: 'Minutes', key: 'request.path' }],
    }
    expect(namesOf(http, others, others)).not.toContain('request body')
  })
})

describe('the policies of an LLM route', () => {
  it('come in the order of the list', () => {
    expect(namesOf(llm, everything)).toEqual([
      'cors',
      'api key',
      'authorization',
      'request limits',
      'key limits',
      'llm request',
      'token charges of key limits',
      'authorization of the LLM request',
      'token limits',
      'budgets',
    ])
  })

  it('are the check of pages and the reading of the request when none is configured', () => {
    expect(namesOf(llm, {})).toEqual(['origin', 'llm request'])
  })

  it('take rateLimit.local for localRateLimit', () => {
    const rateLimit: PoliciesConfig['rateLimit'] = { local: [{ requests: 1, unit: 'Hours' }] }
    expect(namesOf(llm, { rateLimit })).toEqual(['origin', 'request limits', 'llm request'])
  })

  it('let a browser read a refusal', () => {
    const exchange = fixtureExchange({ headers: { origin: 'https://chat.example.com' } })
    const reply = throughPolicies(compile(llm, everything), exchange)
    expect(reply.status).toBe(401)
    expect(reply.headers['access-control-allow-origin']).toBe('https://chat.example.com')
  })

  it('count nothing for strangers and for requests that rules refuse', () => {
    const policies = compile(llm, everything)
    for (let count = 0; count < 5; count++) throughPolicies(policies, fixtureExchange())
    const send = () =>
      status(policies, fixtureExchange({ headers: { 'x-api-key': 'k' } }, { llmRequest: { model: 'y' } }))
    expect(send()).toBe(200)
    expect(send()).toBe(429)
  })
})

describe('the policies of an MCP route', () => {
  it('permit the methods and headers of sessions for allowed origins', () => {
    const cors = {
      allowOrigins: ['https://chat.example.com'],
      allowHeaders: ['content-type', 'Mcp-Session-Id'],
    }
    const policies = compile(mcp, { cors })
    const origin = 'https://chat.example.com'
    const asked = { origin, 'access-control-request-method': 'DELETE' }
    const preflight = throughPolicies(policies, fixtureExchange({ method: 'OPTIONS', headers: asked }))
    expect(preflight.headers).toMatchObject({
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-allow-headers': 'content-type, Mcp-Session-Id, mcp-protocol-version, last-event-id',
    })
    const { headers } = throughPolicies(policies, fixtureExchange({ headers: { origin } }))
    expect(headers['access-control-expose-headers']).toBe('x-request-id, mcp-session-id, www-authenticate')
  })

  it('take the origins of the most specific scope', () => {
    const origin = (host: string) => ({ cors: { allowOrigins: [`https://${host}`] } })
    const policies = compile(mcp, origin('a.test'), origin('b.test'))
    const from = (host: string) => fixtureExchange({ headers: { origin: `https://${host}` } })
    expect(status(policies, from('b.test'))).toBe(200)
    expect(status(policies, from('a.test'))).toBe(403)
  })

  it('apply rules on single items of every scope', () => {
    const rule = (name: string): PoliciesConfig => ({
      mcpAuthorization: { rules: [{ deny: `mcp.tool.name == "${name}"` }] },
    })
    const scopes = [rule('a'), rule('b')].map((policies, index) => ({ name: `scope ${index}`, policies }))
    const { rules } = compilePolicies(scopes, fixtureContext(), mcp)
    const may = (name: string) =>
      rules?.permits(
        fixtureExchange(),
        { method: 'tools/call', kind: 'tool', name, target: 't', arguments: {} },
        'call',
      )
    expect([may('a'), may('b'), may('c')]).toEqual([false, false, true])
  })
})

describe('the policies of a plain route', () => {
  it('omit limits for LLM traffic elsewhere', () => {
    const config: PoliciesConfig = {
      localRateLimit: [{ requests: 1, unit: 'Hours', appliesTo: 'llm' }],
      remoteRateLimit: {
        host: 'limits:8081',
        domain: 'd',
        appliesTo: 'llm',
        descriptors: [{ entries: [{ key: 'a', value: '"b"' }] }],
      },
    }
    expect(namesOf(http, config)).toEqual([])
  })

  it('omit token limits for traffic without tokens', () => {
    expect(namesOf(http, { localRateLimit: [{ tokens: 1, unit: 'Hours' }] })).toEqual([])
    expect(namesOf(http, {})).toEqual([])
  })
})

describe('the policies of several scopes', () => {
  it('apply step by step, the most general scope first', () => {
    const rules = (rule: string): PoliciesConfig => ({
      authorization: { rules: [{ require: rule }] },
      localRateLimit: [{ requests: 10, unit: 'Hours' }],
    })
    const policies = compile(http, rules('request.path == "/a"'), rules('request.method == "GET"'))
    expect(policies.map((policy) => policy.name)).toEqual([
      'authorization',
      'authorization',
      'request limits',
      'request limits',
    ])
    expect(status(policies, fixtureExchange({ path: '/a', method: 'GET' }))).toBe(200)
    expect(status(policies, fixtureExchange({ path: '/b', method: 'GET' }))).toBe(403)
    expect(status(policies, fixtureExchange({ path: '/a', method: 'PUT' }))).toBe(403)
  })

  it('have one cors, the most specific one', () => {
    const cors = (host: string): PoliciesConfig => ({ cors: { allowOrigins: [`https://${host}`] } })
    expect(namesOf(http, cors('a.test'), cors('b.test'))).toEqual(['cors'])
    const [policy] = compile(http, cors('a.test'), cors('b.test'), {})
    const exchange = fixtureExchange({ headers: { origin: 'https://b.test' } })
    const { headers } = throughPolicies([policy], exchange)
    expect(headers['access-control-allow-origin']).toBe('https://b.test')
  })

  it('count a gateway together, whichever route a request takes', () => {
    const context = fixtureContext()
    const gateway = {
      name: 'gateway default',
      policies: { localRateLimit: [{ requests: 2, unit: 'Hours' as const }] },
    }
    const routes = [http, llm, mcp].map(
      (kind, index) =>
        compilePolicies([gateway, { name: `route ${index}`, policies: {} }], context, kind).policies,
    )
    expect(routes.map((policies) => status(policies, fixtureExchange()))).toEqual([200, 200, 429])
  })

  it('apply token limits of a gateway to its LLM routes only', () => {
    const gateway: PoliciesConfig = { localRateLimit: [{ tokens: 1, unit: 'Hours' }] }
    expect(namesOf(llm, gateway, {})).toEqual(['origin', 'llm request', 'token limits'])
    expect(namesOf(http, gateway, {})).toEqual([])
    expect(namesOf(mcp, gateway, {})).toEqual(['origin'])
  })
})

describe('a buffer of a gateway', () => {
  it('applies to routes of HTTP backends only: streams of others have no end', () => {
    const gateway: PoliciesConfig = { buffer: { response: {} } }
    expect(namesOf(http, gateway, {})).toEqual(['buffer'])
    expect(namesOf(llm, gateway, {})).toEqual(namesOf(llm, {}, {}))
    expect(namesOf(mcp, gateway, {})).toEqual(namesOf(mcp, {}, {}))
  })
})

describe('authentication on several scopes', () => {
  const keys = (...records: NonNullable<PoliciesConfig['apiKey']>['keys']): PoliciesConfig => ({
    apiKey: { keys: records },
  })

  async function send(policies: readonly Policy[], headers: Record<string, string>) {
    const exchange = fixtureExchange({ headers })
    const { status, headers: replied } = await throughAll(policies, exchange)
    return { exchange, status, replied, left: exchange.facts.request.headers }
  }

  it('lets one key pass all of them, and forwards it nowhere', async () => {
    const policies = compile(llm, keys({ key: 'k' }), keys({ key: 'k' }, { key: 'only here' }))
    expect(await send(policies, { 'x-api-key': 'k', accept: '*/*' })).toMatchObject({
      status: 200,
      left: { accept: '*/*' },
    })
    expect((await send(policies, { 'x-api-key': 'only here' })).status).toBe(401)
    expect((await send(policies, {})).status).toBe(401)
  })

  it('takes the facts of the most specific scope, and the models that all of them allow', async () => {
    const outer = keys({ key: 'k', metadata: { group: 'outer' }, allowedModels: ['a', 'b'] })
    const inner = keys({ key: 'k', metadata: { group: 'inner' }, allowedModels: ['b', 'c'] })
    const { exchange } = await send(compile(llm, outer, inner), { 'x-api-key': 'k' })
    expect(exchange.facts.apiKey).toMatchObject({ group: 'inner' })
    expect(exchange.auth.keyGroup).toBe('inner')
    expect(['a', 'b', 'c'].filter((model) => exchange.auth.models?.allows(model))).toEqual(['b'])
    expect(exchange.auth.models?.patterns).toEqual(['b'])
    const withoutList = await send(compile(llm, outer, keys({ key: 'k' })), { 'x-api-key': 'k' })
    expect(withoutList.exchange.auth.models?.patterns).toEqual(['a', 'b'])
    expect(withoutList.exchange.auth.models?.allows('c')).toBe(false)
  })

  it('accepts one token for a gateway and its MCP server, whose challenge applies', async () => {
    const pair = signingPair('k')
    const jwks = { inline: keySetOf(pair) }
    const context = fixtureContext()
    context.clock.advance(1_700_000_000_000)
    const resourceMetadata = { resource: audience }
    const scopes: PolicyScope[] = [
      { name: 'gateway default', policies: { jwtAuth: { issuer, audiences: [audience], jwks } } },
      {
        name: 'route a',
        policies: { mcpAuthentication: { issuer, audiences: ['a'], jwks, resourceMetadata } },
      },
    ]
    const { policies } = compilePolicies(scopes, context, mcp)
    const withToken = async (aud: string | string[]) =>
      send(policies, { authorization: `Bearer ${await signToken(pair, context.clock.now(), { aud })}` })
    const { status, exchange, left } = await withToken([audience, 'a'])
    expect(status).toBe(200)
    expect(exchange.facts.jwt).toMatchObject({ sub: 'ada' })
    expect(left).toEqual({})
    expect((await withToken(audience)).status).toBe(401)
    expect((await withToken('a')).status).toBe(401)
    expect((await send(policies, {})).replied['www-authenticate']).toContain('resource_metadata=')
  })
})

describe('another scope', () => {
  const scopes: readonly PoliciesConfig[] = [
    {},
    { apiKey: { keys: [{ key: 'k' }] } },
    { apiKey: { keys: [{ key: 'k' }, { key: 'l' }], mode: 'optional' } },
    { apiKey: { keys: [{ key: 'l' }], mode: 'permissive' } },
    { authorization: { rules: [{ deny: 'request.method == "PUT"' }] } },
    { authorization: { rules: ['request.method == "GET"'] } },
    { authorization: { rules: [{ require: 'request.path == "/a"' }, 'llmRequest.model == "m"'] } },
    { localRateLimit: [{ requests: 2, unit: 'Hours' }] },
    { localRateLimit: [{ tokens: 1, unit: 'Hours' }] },
  ]
  const anyScope = fc.constantFrom(...scopes)
  const anyRequest = fc.record({
    method: fc.constantFrom('GET', 'PUT'),
    path: fc.constantFrom('/a', '/b'),
    key: fc.constantFrom(undefined, 'k', 'l', 'unknown'),
    model: fc.constantFrom('m', 'n'),
  })

  it('never admits a request that one scope refuses', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyScope, { minLength: 1, maxLength: 3 }),
        fc.array(anyRequest, { minLength: 1, maxLength: 4 }),
        async (configured, requests) => {
          const together = compile(llm, ...configured)
          const alone = configured.map((scope) => compile(llm, scope))
          for (const { method, path, key, model } of requests) {
            const send = (policies: readonly Policy[]) => {
              const headers: Record<string, string> = key === undefined ? {} : { 'x-api-key': key }
              return throughAll(
                policies,
                fixtureExchange({ method, path, headers }, { llmRequest: { model } }),
              )
            }
            const admitted = (await send(together)).status === 200
            // A scope that counts must count alone what it counted together.
            if (!admitted) continue
            for (const policies of alone) expect((await send(policies)).status).toBe(200)
          }
        },
      ),
    )
  })
})

describe('responses of the route itself', () => {
  const hsts: PoliciesConfig = {
    responseHeaderModifier: {
      set: { 'strict-transport-security': 'max-age=1' },
      remove: ['x-ratelimit-limit'],
    },
  }

  it('requires authentication and counts against the limits of the route', () => {
    const policies = compile(http, {
      ...hsts,
      apiKey: { keys: [{ key: 'k' }] },
      localRateLimit: [{ requests: 1, unit: 'Hours' }],
      requestRedirect: { scheme: 'https' },
    })
    const send = (headers: Record<string, string>) => throughPolicies(policies, fixtureExchange({ headers }))
    expect(send({}).status).toBe(401)
    const redirect = send({ 'x-api-key': 'k' })
    expect(redirect.status).toBe(302)
    expect(redirect.headers).toMatchObject({
      location: 'https://gateway.test/v1/chat/completions',
      'strict-transport-security': 'max-age=1',
      'x-ratelimit-limit': '1',
    })
    const refused = send({ 'x-api-key': 'k' })
    expect(refused.status).toBe(429)
    expect(refused.headers).not.toHaveProperty('strict-transport-security')
  })

  it('may have another content type', () => {
    const policies = compile(http, {
      directResponse: { status: 200, body: '{}' },
      responseHeaderModifier: { set: { 'content-type': 'application/json' } },
    })
    expect(throughPolicies(policies, fixtureExchange()).headers).toEqual({
      'content-type': 'application/json',
    })
  })
})

describe('compiling 10,000 routes', () => {
  it('compiles each scope once, and again only where it has changed', () => {
    const context = fixtureContext()
    let compiled = 0
    const counting = {
      ...context,
      cached: <T>(node: object, purpose: string, create: () => T) =>
        context.cached(node, purpose, () => {
          if (purpose.startsWith('policies')) compiled += 1
          return create()
        }),
    }
    const gateway: PolicyScope = { name: 'gateway default', policies: { cors: {} } }
    const routes = Array.from(
      { length: 10_000 },
      (_, index): PolicyScope => ({
        name: `route ${index}`,
        policies: { authorization: { rules: ['request.path == "/"'] } },
      }),
    )
    const reload = () => {
      for (const route of routes) compilePolicies([gateway, route], counting, http)
    }
    reload()
    expect(compiled).toBe(10_001)
    const startedAt = performance.now()
    reload()
    expect(compiled).toBe(10_001)
    // Takes tens of milliseconds; the count above detects what is compiled again.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    routes[7] = { name: 'route 7', policies: {} }
    reload()
    expect(compiled).toBe(10_002)
  })
})
