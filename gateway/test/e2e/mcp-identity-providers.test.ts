import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { type IdentityProvider, startIdentityProvider } from '../support/mcp-identity-provider.ts'
import { idpAShape, project, server } from '../support/mcp-idp-a.ts'
import { clientId as idpBClientId, idpBShape } from '../support/mcp-idp-b.ts'
import { initializeMessage, openSession, post } from '../support/mcp-raw.ts'
import { jsonAnswer, member, startMockServer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// The identity providers of the specification, against test doubles with their endpoints, on separate ports.

const targets = [programTarget('files')]

type Protected = { url: string; origin: string; provider: IdentityProvider }

async function protect(
  provider: IdentityProvider,
  settings: Record<string, unknown>,
  rules?: string[],
): Promise<Protected> {
  const { mcpUrl } = await startMcpGateway((url) => ({
    targets,
    policies: {
      mcpAuthentication: {
        mode: 'strict',
        issuer: provider.issuer,
        audiences: [url],
        resourceMetadata: {
          resource: url,
          scopesSupported: ['openid', 'profile'],
          bearerMethodsSupported: ['header'],
        },
        ...settings,
      },
      ...(rules === undefined ? {} : { authorization: { rules } }),
    },
  }))
  return { url: mcpUrl, origin: new URL(mcpUrl).origin, provider }
}

const getJson = async (url: string): Promise<{ status: number; headers: Headers; body: unknown }> => {
  const response = await fetch(url)
  return { status: response.status, headers: response.headers, body: await response.json() }
}

/** A token by the grant of the specification's example, or the error. */
async function clientCredentials(
  provider: IdentityProvider,
  fields: Record<string, string>,
): Promise<unknown> {
  const metadata = await getJson(`${provider.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const response = await fetch(String(member(metadata.body, 'token_endpoint')), {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...fields }),
  })
  return response.json()
}

async function statusWith(url: string, token: string | undefined): Promise<number> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return (await post(url, initializeMessage, headers)).status
}

describe('idpA', () => {
  const claims = { roles: ['reader'], tenants: { T1: { roles: ['admin'] } } }
  const startA = () => startIdentityProvider(idpAShape(claims))

  it('reports the metadata address to a client without a token', async () => {
    const { url, origin } = await protect(await startA(), { provider: { idpA: {} } })
    const answer = await post(url, initializeMessage)
    expect(answer.status).toBe(401)
    expect(answer.messages).toEqual([{ error: 'unauthorized', error_description: 'JWT token required' }])
    expect(answer.headers.get('www-authenticate')).toContain(
      `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
    )
  })

  it('is described by its discovery document, with registration at the gateway', async () => {
    const { url, origin, provider } = await protect(await startA(), {
      provider: { idpA: {} },
      clientId: 'registered',
    })
    const resource = await getJson(`${origin}/.well-known/oauth-protected-resource/mcp`)
    expect(resource.body).toEqual({
      resource: url,
      authorization_servers: [url],
      mcp_protocol_version: '2025-11-25',
      resource_type: 'mcp-server',
      bearer_methods_supported: ['header'],
      scopes_supported: ['openid', 'profile'],
    })
    expect(resource.headers.get('access-control-allow-origin')).toBe('*')
    const root = `${origin}/.well-known/oauth-authorization-server`
    const { host } = new URL(provider.issuer)
    expect((await getJson(root)).body).toMatchObject({
      issuer: provider.issuer,
      jwks_uri: `http://${host}/${project}/.well-known/jwks.json`,
      token_endpoint: `http://${host}/oauth2/v1/apps/token`,
      registration_endpoint: `${root}/client-registration`,
    })
    expect((await getJson(`${root}/mcp`)).body).toMatchObject({
      issuer: url,
      registration_endpoint: `${root}/mcp/client-registration`,
    })
    const registration = await fetch(`${root}/client-registration`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: 'test',
        redirect_uris: ['http://localhost:1234/callback'],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      }),
    })
    expect(registration.status).toBe(201)
    expect(await registration.json()).toMatchObject({
      client_id: 'registered',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://localhost:1234/callback'],
    })
    expect(provider.seen.filter(({ method }) => method === 'POST')).toEqual([])
  })

  it('finds the keys of the project, the port of the issuer kept', async () => {
    const { url, provider } = await protect(await startA(), { provider: { descope: {} } })
    const granted = await clientCredentials(provider, {
      client_id: 'service',
      client_secret: 's',
      scope: 'openid',
      resource: url,
    })
    expect(await statusWith(url, String(member(granted, 'access_token')))).toBe(200)
    expect(provider.seen.map(({ path }) => path)).toContain(`/${project}/.well-known/jwks.json`)
    expect(new URL(provider.issuer).pathname).toBe(`/v1/apps/agentic/${project}/${server}`)
  })

  it('refuses a token for another resource', async () => {
    const { url, provider } = await protect(await startA(), { provider: { idpA: {} } })
    expect(await statusWith(url, await provider.sign({ aud: `${url}/other` }))).toBe(401)
  })

  it.each([
    ['"reader" in jwt.roles', 200],
    ['"writer" in jwt.roles', 403],
    ['"admin" in jwt.tenants["T1"].roles', 200],
    ['"admin" in jwt.tenants["T2"].roles', 403],
    ['"staff" in jwt.groups', 403],
  ])('lets the rule %s decide: %i', async (rule, status) => {
    const { url, provider } = await protect(await startA(), { provider: { idpA: {} } }, [rule])
    const token = await provider.sign({ aud: url, ...claims })
    expect(await statusWith(url, token)).toBe(status)
  })
})

describe('idpB', () => {
  const startB = (grants?: string[]) => startIdentityProvider(idpBShape(['staff'], grants))
  const settings = { provider: { idpB: {} }, audiences: [idpBClientId], clientId: idpBClientId }

  it('is described with a registration, though it has none', async () => {
    const { origin, provider } = await protect(await startB(), settings)
    const { body } = await getJson(`${origin}/.well-known/oauth-authorization-server`)
    expect(body).toMatchObject({
      issuer: provider.issuer,
      jwks_uri: `${provider.issuer}jwks/`,
      registration_endpoint: `${origin}/.well-known/oauth-authorization-server/client-registration`,
    })
    expect(provider.issuer.endsWith('/')).toBe(true)
  })

  it('cannot register clients without a client id', async () => {
    const { origin } = await protect(await startB(), {
      provider: { authentik: {} },
      audiences: [idpBClientId],
    })
    const response = await fetch(`${origin}/.well-known/oauth-authorization-server/client-registration`, {
      method: 'POST',
      body: '{"redirect_uris":[]}',
    })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('clientId is required')
  })

  it('accepts tokens whose audience is the client id, and no other', async () => {
    const { url, provider } = await protect(await startB(), settings)
    const granted = await clientCredentials(provider, {
      client_id: idpBClientId,
      username: 'service',
      password: 'p',
      scope: 'openid profile',
    })
    expect(await statusWith(url, String(member(granted, 'access_token')))).toBe(200)
    expect(await statusWith(url, await provider.sign({ aud: url }))).toBe(401)
  })

  it('wants the slash at the end of the issuer, as the tokens have it', async () => {
    const provider = await startB()
    const without = provider.issuer.replace(/\/$/, '')
    const { url } = await protect(provider, { ...settings, issuer: without })
    expect(await statusWith(url, await provider.sign({ aud: idpBClientId }))).toBe(401)
    expect(await statusWith(url, await provider.sign({ aud: idpBClientId, iss: without }))).toBe(200)
  })

  it('has groups only where the scope profile was asked for', async () => {
    const { url, provider } = await protect(await startB(), settings, ['"staff" in jwt.groups'])
    const token = async (scope: string) =>
      String(
        member(
          await clientCredentials(provider, { client_id: idpBClientId, password: 'p', scope }),
          'access_token',
        ),
      )
    expect(await statusWith(url, await token('openid'))).toBe(403)
    expect(await statusWith(url, await token('openid profile'))).toBe(200)
  })

  it('refuses a grant its client does not list', async () => {
    const provider = await startB(['authorization_code'])
    expect(await clientCredentials(provider, { client_id: idpBClientId, password: 'p' })).toEqual({
      error: 'invalid_grant',
    })
  })
})

describe('a provider in trouble', () => {
  it('may be down when the gateway starts', async () => {
    const provider = await startIdentityProvider(idpAShape({}), { startsLaterAt: await freePort() })
    const { url } = await protect(provider, { provider: { idpA: {} } })
    expect(await statusWith(url, undefined)).toBe(401)
    const token = await provider.sign({ aud: url })
    // Not 401, which would make a client throw a good token away.
    expect(await statusWith(url, token)).toBe(503)
    await provider.start()
    await until('the keys arrive', async () => (await statusWith(url, token)) === 200, 20_000)
  })

  it('may change its keys while the gateway runs', async () => {
    const { url, provider } = await protect(await startIdentityProvider(idpAShape({})), {
      provider: { idpA: {} },
    })
    const before = await provider.sign({ aud: url })
    expect(await statusWith(url, before)).toBe(200)
    await provider.rotateKeys()
    expect(await statusWith(url, await provider.sign({ aud: url }))).toBe(200)
  })

  it('may fail while tokens it has signed are in use', async () => {
    const { url, origin, provider } = await protect(await startIdentityProvider(idpAShape({})), {
      provider: { idpA: {} },
    })
    const metadata = `${origin}/.well-known/oauth-authorization-server/mcp`
    const described = await getJson(metadata)
    expect(await statusWith(url, await provider.sign({ aud: url, sub: 'first' }))).toBe(200)
    provider.failWith(500)
    expect(await statusWith(url, await provider.sign({ aud: url, sub: 'second' }))).toBe(200)
    expect(await getJson(metadata)).toMatchObject({ status: 200, body: described.body })
    await provider.stop()
    expect(await statusWith(url, await provider.sign({ aud: url, sub: 'third' }))).toBe(200)
  })

  it('is not asked again and again about keys that do not exist', async () => {
    const { url, provider } = await protect(await startIdentityProvider(idpAShape({})), {
      provider: { idpA: {} },
    })
    expect(await statusWith(url, await provider.sign({ aud: url }))).toBe(200)
    for (let index = 0; index < 20; index += 1) {
      expect(await statusWith(url, await provider.sign({ aud: url }, { kid: `unknown-${index}` }))).toBe(401)
    }
    const fetches = provider.seen.filter(({ path }) => path.endsWith('/jwks.json'))
    // The first fetch, a burst of five, and one more if the loop takes 10 s.
    expect(fetches.length).toBeLessThanOrEqual(7)
  })

  it('may change its keys while a client repeats a token with an unknown key', async () => {
    const { url, provider } = await protect(await startIdentityProvider(idpAShape({})), {
      provider: { idpA: {} },
    })
    const forged = await provider.sign({ aud: url }, { kid: 'forged' })
    expect(await statusWith(url, await provider.sign({ aud: url }))).toBe(200)
    for (let index = 0; index < 20; index += 1) expect(await statusWith(url, forged)).toBe(401)
    await provider.rotateKeys()
    expect(await statusWith(url, await provider.sign({ aud: url }))).toBe(200)
  })
})

describe('keys that are configured', () => {
  it('come from another address, from text, and need no provider', async () => {
    const provider = await startIdentityProvider(idpAShape({}))
    const elsewhere = `${new URL(provider.issuer).origin}/${project}/.well-known/jwks.json`
    const inline = JSON.stringify({ keys: [provider.publicKey()] })
    for (const jwks of [elsewhere, { url: elsewhere }, inline, { inline }]) {
      const { url } = await protect(provider, { jwks })
      expect(await statusWith(url, await provider.sign({ aud: url }))).toBe(200)
    }
  })
})

describe('a session', () => {
  it('can be used only by the subject that opened it', async () => {
    const { url, provider } = await protect(await startIdentityProvider(idpAShape({})), {
      provider: { idpA: {} },
    })
    const as = async (sub: string) => ({ authorization: `Bearer ${await provider.sign({ aud: url, sub })}` })
    const alice = await openSession(url, await as('alice'))
    const list = { jsonrpc: '2.0', id: 5, method: 'tools/list' }
    expect((await alice.send(list, await as('mallory'))).status).toBe(404)
    const stolen = { ...alice.headers, ...(await as('mallory')), accept: 'text/event-stream' }
    expect((await fetch(url, { headers: stolen })).status).toBe(404)
    await fetch(url, { method: 'DELETE', headers: stolen })
    expect((await alice.send(list)).status).toBe(200)
    // A new token of the same subject goes on with it.
    expect((await alice.send(list, await as('alice'))).status).toBe(200)
  })

  it('asks the rules with the claims of each single request', async () => {
    const { url, provider } = await protect(
      await startIdentityProvider(idpAShape({})),
      { provider: { idpA: {} } },
      ['"reader" in jwt.roles'],
    )
    const as = async (roles: string[]) => ({
      authorization: `Bearer ${await provider.sign({ aud: url, roles })}`,
    })
    const session = await openSession(url, await as(['reader']))
    const list = { jsonrpc: '2.0', id: 5, method: 'tools/list' }
    const refused = await session.send(list, await as([]))
    expect([refused.status, refused.text]).toEqual([403, 'authorization failed'])
  })
})

describe('a token', () => {
  it('is not passed on to the target', async () => {
    const provider = await startIdentityProvider(idpAShape({}))
    const upstream = await startMockServer(
      jsonAnswer(200, {
        jsonrpc: '2.0',
        id: 0,
        result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'm', version: '1' } },
      }),
    )
    const gateway = await startMcpGateway((url) => ({
      targets: [{ name: 'http', mcp: { host: upstream.url } }],
      policies: {
        mcpAuthentication: { issuer: provider.issuer, audiences: [url], provider: { idpA: {} } },
      },
    }))
    const token = await provider.sign({ aud: gateway.mcpUrl })
    await openSession(gateway.mcpUrl, { authorization: `Bearer ${token}`, 'x-request-source': 'test' })
    const seen = JSON.stringify(upstream.seen.map(({ headers }) => headers))
    expect(seen).toContain('x-request-source')
    expect(seen).not.toContain(token)
  })
})
