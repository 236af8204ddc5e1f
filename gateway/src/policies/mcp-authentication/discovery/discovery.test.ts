import { describe, expect, it } from 'vitest'
import { throughAll, upstreamContext } from '../../../../test/fixtures/jwt.ts'
import { fixtureExchange, textOf } from '../../../../test/fixtures/pipeline.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { McpAuthenticationConfig } from '../config.ts'
import { compileMcpAuthentication } from '../mcp-authentication.ts'

const resource = 'http://localhost:3000/mcp'
const idpA = 'https://api.idp-a.test:8443/v1/apps/agentic/P1/S1'
const idpB = 'https://idp-b.test/application/o/app/'
const prm = '/.well-known/oauth-protected-resource'
const asm = '/.well-known/oauth-authorization-server'

const upstreamMetadata = {
  issuer: idpA,
  authorization_endpoint: `${idpA}/authorize`,
  token_endpoint: `${idpA}/token`,
  jwks_uri: 'https://api.idp-a.test:8443/P1/.well-known/jwks.json',
  registration_endpoint: `${idpA}/register`,
  code_challenge_methods_supported: ['S256'],
  client_id_metadata_document_supported: true,
  authorization_response_iss_parameter_supported: true,
  vendor_extension: { any: [1] },
}

const base: McpAuthenticationConfig = {
  issuer: idpA,
  audiences: [resource],
  provider: { idpA: {} },
  resourceMetadata: { resource, scopesSupported: ['openid'], bearerMethodsSupported: ['header'] },
}

function setUp(changed: Partial<McpAuthenticationConfig> = {}, metadata: object = upstreamMetadata) {
  const { context, upstream } = upstreamContext()
  const config = { ...base, ...changed }
  const url = `${config.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  upstream.answers.set(url, { text: JSON.stringify(metadata) })
  const { discovery } = compileMcpAuthentication(config, context)
  return {
    clock: context.clock,
    upstream,
    url,
    async ask(path: string, request: { method?: string; body?: string; query?: string; host?: string } = {}) {
      const { method = 'GET', body, ...facts } = request
      const exchange = fixtureExchange({ path, method, host: 'internal:9', ...facts })
      const withBody = { ...exchange, body: body === undefined ? undefined : Buffer.from(body) }
      const reply = await throughAll([discovery], withBody)
      const text = textOf(reply)
      const json = text.startsWith('{') ? JSON.parse(text) : undefined
      return { reply, status: reply.status, headers: reply.headers, text, json }
    },
  }
}

describe('the protected resource metadata', () => {
  it('matches the specification, in its order', async () => {
    const { status, headers, text } = await setUp().ask(`${prm}/mcp`)
    expect(status).toBe(200)
    expect(text).toBe(
      '{"resource":"http://localhost:3000/mcp","authorization_servers":["http://localhost:3000/mcp"],' +
        '"mcp_protocol_version":"2025-11-25","resource_type":"mcp-server",' +
        '"scopes_supported":["openid"],"bearer_methods_supported":["header"]}',
    )
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, OPTIONS',
    })
  })

  it('is also served at the root and after the path', async () => {
    const { ask } = setUp()
    const { text } = await ask(`${prm}/mcp`)
    expect((await ask(prm)).text).toBe(text)
    expect((await ask(`/mcp${prm}`)).text).toBe(text)
  })

  it('adds configured fields, which take precedence', async () => {
    const resourceMetadata = {
      resource,
      resourceDocumentation: 'https://docs.test',
      tls_client_certificate_bound_access_tokens: false,
      resourceType: 'special',
      authorizationServers: ['https://id.test'],
    }
    const { json } = await setUp({ resourceMetadata }).ask(prm)
    expect(json).toEqual({
      resource,
      authorization_servers: ['https://id.test'],
      mcp_protocol_version: '2025-11-25',
      resource_type: 'special',
      resource_documentation: 'https://docs.test',
      tls_client_certificate_bound_access_tokens: false,
    })
  })

  it('contains the issuer of the provider if configured, or without a kind of provider', async () => {
    const direct = await setUp({ authorizationServers: 'provider' }).ask(prm)
    expect(direct.json.authorization_servers).toEqual([idpA])
    const { provider: _, ...generic } = base
    const { context } = upstreamContext()
    const { discovery } = compileMcpAuthentication(generic, context)
    const reply = await throughAll([discovery], fixtureExchange({ path: prm, method: 'GET' }))
    expect(JSON.parse(textOf(reply)).authorization_servers).toEqual([idpA])
  })

  it.each([
    [{ keycloak: {} }, undefined, ['https://kc.test/realms/main']],
    [{ keycloak: {} }, 'gateway', [resource]],
    [{ okta: {} }, undefined, [resource]],
    [{ okta: {} }, 'provider', ['https://kc.test/realms/main']],
  ] as const)('of %j with authorizationServers %s leads to %j', async (provider, setting, expected) => {
    const issuer = 'https://kc.test/realms/main'
    const { json } = await setUp({
      issuer,
      provider,
      ...(setting === undefined ? {} : { authorizationServers: setting }),
    }).ask(prm)
    expect(json.authorization_servers).toEqual(expected)
  })

  it('is derived from the request without a configured resource', async () => {
    const { ask } = setUp({ resourceMetadata: {} })
    expect((await ask(`${prm}/mcp`, { host: 'gw.test' })).json).toMatchObject({
      resource: 'http://gw.test/mcp',
      authorization_servers: ['http://gw.test/mcp'],
    })
    expect((await ask(prm, { host: 'gw.test' })).json).toMatchObject({
      resource: 'http://gw.test',
      authorization_servers: ['http://gw.test/mcp'],
    })
  })
})

describe('the authorization server metadata', () => {
  it('retains the issuer of the provider at the root, with registration at the gateway', async () => {
    const { json } = await setUp().ask(asm)
    expect(json).toEqual({
      ...upstreamMetadata,
      registration_endpoint: `http://localhost:3000${asm}/client-registration`,
    })
  })

  it('has the issuer of the gateway if the URL contains the path of the resource', async () => {
    const { ask } = setUp()
    const { authorization_response_iss_parameter_supported: _, ...rest } = upstreamMetadata
    const expected = {
      ...rest,
      issuer: resource,
      registration_endpoint: `http://localhost:3000${asm}/mcp/client-registration`,
    }
    expect((await ask(`${asm}/mcp`)).json).toEqual(expected)
    expect((await ask(`${asm}/other`)).json.issuer).toBe('http://localhost:3000/other')
    expect((await ask('/.well-known/openid-configuration/mcp')).json.issuer).toBe(resource)
    expect((await ask('/mcp/.well-known/openid-configuration')).json).toEqual({
      ...expected,
      registration_endpoint: 'http://localhost:3000/mcp/.well-known/openid-configuration/client-registration',
    })
  })

  it('has the identical issuer for a resource with a trailing slash or without a path', async () => {
    for (const each of ['http://localhost:3000/mcp/', 'http://localhost:3000']) {
      const { ask } = setUp({ resourceMetadata: { resource: each } })
      const [server] = (await ask(prm)).json.authorization_servers
      expect((await ask(`${asm}/mcp`)).json.issuer).toBe(server)
    }
  })

  it('disables client metadata documents if clientId is set', async () => {
    const { json } = await setUp({ clientId: 'c' }).ask(asm)
    expect(json).not.toHaveProperty('client_id_metadata_document_supported')
  })

  it('offers registration by the provider or by clientId', async () => {
    const without = { ...upstreamMetadata, registration_endpoint: null }
    const here = `http://localhost:3000${asm}/client-registration`
    expect((await setUp({}, without).ask(asm)).json.registration_endpoint).toBeNull()
    expect((await setUp({ clientId: 'c' }, without).ask(asm)).json.registration_endpoint).toBe(here)
    const atB = { issuer: idpB, provider: { idpB: {} } }
    expect((await setUp(atB, without).ask(asm)).json.registration_endpoint).toBe(here)
  })

  it('excludes invalid URLs', async () => {
    const hostile = {
      issuer: idpA,
      authorization_endpoint: 'javascript:alert(1)',
      token_endpoint: 'https://id.test/$(calc)',
      jwks_uri: 'file:///etc/passwd',
      userinfo_endpoint: 'https://id.test/userinfo',
      revocation_endpoint: null,
    }
    expect((await setUp({}, hostile).ask(asm)).json).toEqual({
      issuer: idpA,
      userinfo_endpoint: 'https://id.test/userinfo',
      revocation_endpoint: null,
    })
  })

  it('is fetched once a minute, and served stale while the provider fails', async () => {
    const { ask, clock, upstream, url } = setUp()
    await Promise.all([ask(asm), ask(asm), ask(`${asm}/mcp`)])
    clock.advance(59_999)
    await ask(asm)
    expect(upstream.count(url)).toBe(1)
    upstream.answers.delete(url)
    clock.advance(1)
    expect((await ask(asm)).json.issuer).toBe(idpA)
    await ask(asm)
    expect(upstream.count(url)).toBe(2)
    upstream.answers.set(url, { text: JSON.stringify({ issuer: 'https://new.test' }) })
    clock.advance(5_000)
    expect((await ask(asm)).json.issuer).toBe('https://new.test')
  })

  it.each(['', '[]', '{}', '<html>', '{"issuer":7}'])(
    'is unavailable while the provider returns %s',
    async (text) => {
      const { ask, upstream, url } = setUp()
      upstream.answers.set(url, { text })
      const { status, headers, json } = await ask(asm)
      expect(status).toBe(503)
      expect(json.error).toBe('temporarily_unavailable')
      expect(headers['access-control-allow-origin']).toBe('*')
    },
  )
})

describe('a path', () => {
  it.each([
    '/mcp',
    '/',
    '/.well-known',
    '/.well-known/other',
    `${asm}-evil`,
    `/mcp${asm}/mcp`,
    '/client-registration',
    '/mcp/client-registration',
  ])('of another kind is not handled: %s', async (path) => {
    expect((await setUp().ask(path)).status).toBe(200)
  })

  it.each([prm, `${asm}/mcp`, `${asm}/client-registration`])(
    'answers preflights of any origin: %s',
    async (path) => {
      const { status, headers } = await setUp().ask(path, { method: 'OPTIONS' })
      expect(status).toBe(204)
      expect(headers['access-control-allow-origin']).toBe('*')
      expect(headers['access-control-allow-headers']).toContain('content-type')
    },
  )

  it('accepts its own methods only', async () => {
    const { ask } = setUp()
    expect(await ask(prm, { method: 'POST' })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD, OPTIONS' },
    })
    expect(await ask(`${asm}/client-registration`)).toMatchObject({
      status: 405,
      headers: { allow: 'POST, OPTIONS' },
    })
  })

  it('of the proxy does not exist for providers that accept resource', async () => {
    const { ask } = setUp()
    expect((await ask(`${asm}/mcp/authorize`)).status).toBe(404)
    expect((await ask(`${asm}/mcp/token`, { method: 'POST' })).status).toBe(404)
  })
})

describe('registration', () => {
  const path = `${asm}/client-registration`
  const request = {
    client_name: 'Chat',
    redirect_uris: ['http://localhost:1234/cb'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic',
    scope: 'openid',
  }
  const register = (config: Partial<McpAuthenticationConfig>, body: unknown = request, at = path) =>
    setUp(config).ask(at, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })

  it('returns the configured client id', async () => {
    for (const at of [path, `${asm}/mcp/client-registration`]) {
      const { status, headers, json } = await register({ clientId: 'pre-registered' }, request, at)
      expect(status).toBe(201)
      expect(headers['access-control-allow-origin']).toBe('*')
      expect(json).toEqual({
        client_id: 'pre-registered',
        client_id_issued_at: 0,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: ['http://localhost:1234/cb'],
        client_name: 'Chat',
        scope: 'openid',
      })
    }
  })

  it.each(['', 'nonsense', '[]', '{"redirect_uris":"x"}'])(
    'accepts a body without data: %s',
    async (body) => {
      const { status, json } = await register({ clientId: 'c' }, body)
      expect(status).toBe(201)
      expect(json).toMatchObject({ client_id: 'c', redirect_uris: [] })
    },
  )

  it('refuses redirect URIs that are not allowed', async () => {
    const config = { clientId: 'c', allowedRedirectUris: ['http://localhost:*/cb'] }
    expect((await register(config)).status).toBe(201)
    const foreign = { ...request, redirect_uris: ['http://localhost:1234/cb', 'https://evil.test/cb'] }
    const { status, json } = await register(config, foreign)
    expect(status).toBe(400)
    expect(json.error).toBe('invalid_redirect_uri')
  })

  it('is forwarded to idpA without a client id', async () => {
    const { ask, upstream } = setUp()
    const at = 'https://api.idp-a.test:8443/v1/mgmt/mcp/client/P1/S1/register'
    upstream.answers.set(at, { status: 201, text: '{"client_id":"dynamic","x":1}' })
    const { status, text, headers } = await ask(path, { method: 'POST', body: JSON.stringify(request) })
    expect([status, text]).toEqual([201, '{"client_id":"dynamic","x":1}'])
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(upstream.requests[0]).toMatchObject({ method: 'POST', body: JSON.stringify(request) })
    upstream.answers.set(at, { status: 403, text: '{"error":"access_denied"}' })
    expect((await ask(path, { method: 'POST', body: '{}' })).status).toBe(403)
    upstream.answers.set(at, { status: 502, text: '<html>' })
    expect((await ask(path, { method: 'POST', body: '{}' })).status).toBe(503)
    upstream.answers.delete(at)
    expect((await ask(path, { method: 'POST', body: '{}' })).status).toBe(503)
    expect((await ask(path, { method: 'POST', body: 'nonsense' })).status).toBe(400)
  })

  it('fails for idpB without a client id, with the reason', async () => {
    const { status, json } = await register({ issuer: idpB, provider: { idpB: {} } })
    expect(status).toBe(400)
    expect(json.error_description).toContain('clientId is required')
  })

  it('limits concurrent registrations at the provider', async () => {
    const { ask, upstream } = setUp()
    const answer = Promise.withResolvers<Reply>()
    upstream.answers.set(
      'https://api.idp-a.test:8443/v1/mgmt/mcp/client/P1/S1/register',
      () => answer.promise,
    )
    const asked = Array.from({ length: 20 }, () => ask(path, { method: 'POST', body: '{}' }))
    const refused = await Promise.all(asked.slice(16))
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503, 503])
    answer.resolve({ status: 201, headers: {}, body: Buffer.from('{"client_id":"c"}') })
    const served = await Promise.all(asked.slice(0, 16))
    expect(served.every(({ status }) => status === 201)).toBe(true)
    expect((await ask(path, { method: 'POST', body: '{}' })).status).toBe(201)
  })

  it('has a size limit', async () => {
    await expect(register({ clientId: 'c' }, 'x'.repeat(70_000))).rejects.toMatchObject({
      code: 'request_too_large',
    })
  })
})

describe('a provider that refuses the resource parameter', () => {
  const entraIssuer = 'https://login.microsoftonline.com/T/v2.0'
  const entra = { issuer: entraIssuer, provider: { entra: {} }, clientId: 'c' }
  const metadata = {
    issuer: entraIssuer,
    authorization_endpoint: 'https://login.microsoftonline.com/T/oauth2/v2.0/authorize',
    token_endpoint: 'https://login.microsoftonline.com/T/oauth2/v2.0/token',
  }

  it('is called through the gateway', async () => {
    expect((await setUp(entra, metadata).ask(`${asm}/mcp`)).json).toMatchObject({
      issuer: resource,
      authorization_endpoint: `http://localhost:3000${asm}/mcp/authorize`,
      token_endpoint: `http://localhost:3000${asm}/mcp/token`,
      registration_endpoint: `http://localhost:3000${asm}/mcp/client-registration`,
    })
  })

  it('receives authorization requests without it', async () => {
    const query = '?client_id=c&resource=http%3A%2F%2Flocalhost&scope=a+b&state=%2F&resource=2'
    const { status, headers } = await setUp(entra, metadata).ask(`${asm}/mcp/authorize`, { query })
    expect(status).toBe(302)
    expect(headers['location']).toBe(`${metadata.authorization_endpoint}?client_id=c&scope=a+b&state=%2F`)
  })

  it.each([
    ['a code', 'grant_type=authorization_code&client_id=c&code=x', 'client_secret=s3cret'],
    ['a refresh token', 'grant_type=refresh_token&client_id=c', 'client_secret=s3cret'],
    ['nothing', 'grant_type=client_credentials&client_id=c', undefined],
    ['a code of another client', 'grant_type=authorization_code&client_id=d', undefined],
    ['a secret of its own', 'grant_type=authorization_code&client_id=c&client_secret=own', undefined],
  ])('receives token requests without it, with the expected secret for %s', async (_, form, added) => {
    const { ask, upstream } = setUp({ ...entra, clientSecret: 's3cret' }, metadata)
    upstream.answers.set(metadata.token_endpoint, { text: '{"access_token":"t"}' })
    const { status, json, headers } = await ask(`${asm}/mcp/token`, {
      method: 'POST',
      body: `${form}&resource=x`,
    })
    expect([status, json.access_token, headers['cache-control']]).toEqual([200, 't', 'no-store'])
    expect(upstream.requests.at(-1)?.body).toBe(added === undefined ? form : `${form}&${added}`)
  })
})

describe('the documents of an endpoint at its own path', () => {
  it.each([{ resource: 'https://gw.test/a/mcp' }, {}])(
    'lead from one to the next with %j',
    async (config) => {
      const { ask } = setUp({ issuer: idpA, resourceMetadata: config, clientId: 'c' })
      const origin = 'resource' in config ? 'https://gw.test' : 'http://gw.test'
      const host = 'gw.test'
      const protectedResource = await ask(`${prm}/a/mcp`, { host })
      expect(protectedResource.json).toMatchObject({
        resource: `${origin}/a/mcp`,
        authorization_servers: [`${origin}/a/mcp`],
      })
      const server = await ask(`${asm}/a/mcp`, { host })
      expect(server.json.issuer).toBe(`${origin}/a/mcp`)
      const registration: string = server.json.registration_endpoint
      // An endpoint attached to a shared gateway owns the paths below these prefixes.
      expect(registration.startsWith(`${origin}${asm}/a/mcp/`)).toBe(true)
      const body = '{"redirect_uris":["http://localhost/cb"]}'
      const registered = await ask(registration.slice(origin.length), { host, method: 'POST', body })
      expect(registered.status).toBe(201)
      expect(registered.json.client_id).toBe('c')
    },
  )
})
