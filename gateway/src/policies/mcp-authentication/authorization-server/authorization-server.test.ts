import { describe, expect, it } from 'vitest'
import {
  endpoints,
  origin,
  providerIssuer,
  redirectUri,
  requestIn,
  resource,
  startAuthorizationServer,
  verifier,
} from '../../../../test/fixtures/mcp-authentication.ts'

const minuteMs = 60_000

describe('the metadata', () => {
  it('describes an authorization server with the issuer of the resource', async () => {
    const { ask } = startAuthorizationServer()
    const { json, reply } = await ask('/.well-known/oauth-authorization-server/mcp')
    expect(json).toEqual({
      issuer: resource,
      authorization_endpoint: `${endpoints}/authorize`,
      token_endpoint: `${endpoints}/token`,
      registration_endpoint: `${endpoints}/register`,
      scopes_supported: ['openid', 'mcp'],
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
      protected_resources: [resource],
    })
    expect(reply.headers['access-control-allow-origin']).toBe('*')
    expect((await ask('/.well-known/oauth-authorization-server')).json['issuer']).toBe(resource)
    expect((await ask('/.well-known/oauth-authorization-server/other')).status).toBe(404)
    const prm = await ask('/.well-known/oauth-protected-resource/mcp')
    expect(prm.json['authorization_servers']).toEqual([resource])
  })

  it('has no registration endpoint if registration is disabled', async () => {
    const { ask, register } = startAuthorizationServer({
      front: { registration: false, clientDocuments: false },
    })
    const { json } = await ask('/.well-known/oauth-authorization-server/mcp')
    expect(json).not.toHaveProperty('registration_endpoint')
    expect(json['client_id_metadata_document_supported']).toBe(false)
    expect((await register()).status).toBe(404)
  })

  it.each([
    ['authorize', 'POST', 'GET'],
    ['callback', 'POST', 'GET'],
    ['consent', 'GET', 'POST'],
    ['token', 'GET', 'POST'],
    ['register', 'GET', 'POST'],
  ])('endpoint %s refuses %s', async (endpoint, method, allow) => {
    const { reply } = await startAuthorizationServer().ask(endpoint, { method })
    expect([reply.status, reply.headers['allow']]).toEqual([405, allow])
  })

  it.each(['token', 'register'])('endpoint %s answers preflights of every origin', async (endpoint) => {
    const { reply } = await startAuthorizationServer().ask(endpoint, { method: 'OPTIONS' })
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([204, '*'])
  })

  it('endpoint authorize rejects scripts of other origins', async () => {
    const { ask, authorization } = startAuthorizationServer()
    const { reply } = await ask('authorize', { query: await authorization() })
    expect(reply.headers).not.toHaveProperty('access-control-allow-origin')
  })
})

describe('a login', () => {
  it('redirects to the provider with PKCE, state and the client id of the gateway', async () => {
    const { toProvider, authorization } = startAuthorizationServer({ front: { scopes: ['offline_access'] } })
    const url = await toProvider(await authorization())
    const { state, code_challenge: sent, nonce, ...query } = Object.fromEntries(url.searchParams)
    expect(url.origin + url.pathname).toBe(`${providerIssuer}/authorize`)
    expect(query).toEqual({
      response_type: 'code',
      client_id: 'the-gateway',
      redirect_uri: `${endpoints}/callback`,
      code_challenge_method: 'S256',
      scope: 'offline_access openid mcp',
      resource,
    })
    expect(sent).toMatch(/^[\w-]{43}$/)
    expect(nonce).toMatch(/^[\w-]{22}$/)
    expect(state?.length).toBeLessThan(900)
  })

  it('returns code, state and iss to the client, and a token with the claims of the provider', async () => {
    const { code, redeem, admit, provider, clock } = startAuthorizationServer()
    const { location } = await code()
    expect(location?.origin).toBe('http://127.0.0.1:3334')
    expect(location?.searchParams.get('state')).toBe('xyz')
    expect(location?.searchParams.get('iss')).toBe(resource)
    const { answer } = await redeem()
    expect(answer.status).toBe(200)
    expect(answer.json).toMatchObject({ token_type: 'Bearer', expires_in: 300, scope: 'openid mcp' })
    expect(answer.reply.headers['cache-control']).toBe('no-store')
    expect(answer.text).not.toContain('provider-refresh')
    expect(answer.text).not.toContain('eyJ')
    expect(await admit(answer.json['access_token'])).toMatchObject({
      iss: providerIssuer,
      sub: 'ada',
      groups: ['staff'],
      exp: Math.floor(clock.now() / 1000) + 300,
    })
    const asked = Object.fromEntries(provider.requests.at(-1) ?? [])
    expect(asked).toMatchObject({
      grant_type: 'authorization_code',
      redirect_uri: `${endpoints}/callback`,
      resource,
    })
    expect(asked).not.toHaveProperty('client_secret')
    expect(asked['code_verifier']).not.toBe(verifier)
  })

  it('sends the secret in the form only if the provider does not support the header', async () => {
    const { redeem, provider, upstream } = startAuthorizationServer()
    await redeem()
    const basic = Buffer.from('the-gateway:the+secret').toString('base64')
    expect(upstream.requests.at(-2)?.headers['authorization']).toBe(`Basic ${basic}`)
    const post = startAuthorizationServer()
    post.provider.metadata['token_endpoint_auth_methods_supported'] = ['client_secret_post']
    await post.redeem()
    expect(post.provider.requests.at(-1)?.get('client_secret')).toBe('the secret')
    expect(provider.requests.at(-1)?.has('client_id')).toBe(false)
  })

  it('forwards errors of the provider, with standard codes only', async () => {
    for (const [error, shown] of [
      ['access_denied', 'access_denied'],
      ['<script>', 'server_error'],
    ]) {
      const { ask, toProvider, authorization } = startAuthorizationServer()
      const state = (await toProvider(await authorization())).searchParams.get('state') ?? ''
      const { location } = await ask('callback', {
        query: { error: error ?? '', state, iss: providerIssuer },
      })
      expect(location?.searchParams.get('error')).toBe(shown)
      expect(location?.searchParams.get('state')).toBe('xyz')
    }
  })

  it('returns access_denied if the user denies access', async () => {
    const { ask, authorization } = startAuthorizationServer()
    const page = await ask('authorize', { query: await authorization() })
    const { location } = await ask('consent', { form: { request: requestIn(page.text), decision: 'deny' } })
    expect(location?.searchParams.get('error')).toBe('access_denied')
    expect(location?.searchParams.get('iss')).toBe(resource)
  })

  it('expires after ten minutes for the user and one minute for the client', async () => {
    const { ask, authorization, clock, code } = startAuthorizationServer()
    const page = await ask('authorize', { query: await authorization() })
    clock.advance(10 * minuteMs)
    const late = await ask('consent', { form: { request: requestIn(page.text), decision: 'allow' } })
    expect(late.status).toBe(400)
    const granted = await code()
    clock.advance(minuteMs)
    const { status, json } = await ask('token', {
      form: {
        grant_type: 'authorization_code',
        code: granted.code,
        client_id: granted.parameters.client_id,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      },
    })
    expect([status, json['error']]).toEqual([400, 'invalid_grant'])
  })

  it('continues at a replica with the same session key only', async () => {
    const first = startAuthorizationServer()
    const { form } = await first.redeem()
    const fresh = await first.code({ client_id: form.client_id })
    const second = startAuthorizationServer(
      {},
      { shared: { context: { ...first.context, retained: (_, make) => make() }, upstream: first.upstream } },
    )
    for (const codeValue of first.provider.codes) second.provider.codes.add(codeValue)
    const answer = await second.ask('token', { form: { ...form, code: fresh.code } })
    expect(answer.status).toBe(200)
    expect(await first.admit(answer.json['access_token'])).toMatchObject({ sub: 'ada' })
    const stranger = startAuthorizationServer({}, { key: 'cd'.repeat(32) })
    expect((await stranger.ask('token', { form: { ...form, code: fresh.code } })).json['error']).toBe(
      'invalid_client',
    )
    expect(await stranger.admit(answer.json['access_token'])).toContain('unknown or expired')
  })

  it('ends when the settings of the provider change; the registration does not', async () => {
    const first = startAuthorizationServer()
    const { form, answer } = await first.redeem()
    for (const changed of [{ clientId: 'another' }, { audiences: ['another', resource] }]) {
      const second = startAuthorizationServer(changed)
      expect(await second.admit(answer.json['access_token'])).toContain('unknown or expired')
      const parameters = await second.authorization({ client_id: form.client_id })
      expect((await second.ask('authorize', { query: parameters })).status).toBe(200)
    }
  })

  it('works without a session key, with a warning', async () => {
    const { redeem } = startAuthorizationServer({}, { key: undefined })
    expect((await redeem()).answer.status).toBe(200)
    expect(() => startAuthorizationServer({}, { key: 'short' })).toThrow('64 hexadecimal digits')
  })
})

describe('the claims', () => {
  it('are read from the ID token if configured, with the nonce of the login', async () => {
    const settings = { audiences: ['the-gateway', resource], front: { claims: 'idToken' as const } }
    const { toProvider, authorization, redeem, provider, providerAnswer, ask, admit } =
      startAuthorizationServer(settings)
    const parameters = await authorization({ scope: 'mcp' })
    const url = await toProvider(parameters)
    expect(url.searchParams.get('scope')).toBe('openid mcp')
    provider.idClaims = { nonce: url.searchParams.get('nonce'), email: 'ada@id.test' }
    const { location } = await ask('callback', { query: providerAnswer(url) })
    const form = {
      grant_type: 'authorization_code',
      code: location?.searchParams.get('code') ?? '',
      client_id: parameters.client_id,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
    const answer = await ask('token', { form })
    expect(await admit(answer.json['access_token'])).toMatchObject({ sub: 'ada', email: 'ada@id.test' })
    const another = await redeem()
    expect(another.answer.json['error_description']).toContain('claim nonce')
    provider.idClaims = undefined
    expect((await redeem()).answer.json['error_description']).toContain('no id_token')
  })

  it.each([
    ['another audience', { aud: 'someone else' }],
    ['another issuer', { iss: 'https://evil.test' }],
    ['a time that is over', { exp: 1 }],
  ])('of a token with %s are refused', async (_, claims) => {
    const { redeem, provider } = startAuthorizationServer()
    Object.assign(provider.claims, claims)
    expect((await redeem()).answer.json['error']).toBe('invalid_grant')
  })

  it('are valid for the lifetime from the provider, at most one hour', async () => {
    const short = startAuthorizationServer()
    short.provider.tokens['expires_in'] = 20
    expect((await short.redeem()).answer.json['expires_in']).toBe(20)
    const long = startAuthorizationServer()
    long.provider.tokens['expires_in'] = 86_400
    long.provider.claims['exp'] = Math.floor(long.clock.now() / 1000) + 86_400
    const { answer } = await long.redeem()
    expect(answer.json['expires_in']).toBe(3_600)
    long.clock.advance(60 * minuteMs)
    expect(await long.admit(answer.json['access_token'])).toContain('expired')
  })

  it('reach clients in the token of the provider only if configured', async () => {
    const { redeem, admit } = startAuthorizationServer({ front: { accessTokens: 'provider' } })
    const { answer } = await redeem()
    expect(answer.json['access_token']).toMatch(/^eyJ/)
    expect(await admit(answer.json['access_token'])).toMatchObject({ sub: 'ada' })
    const own = startAuthorizationServer()
    expect(await own.admit(answer.json['access_token'])).toContain('unknown or expired')
  })

  it('that are too large for a header are refused', async () => {
    const { redeem, provider } = startAuthorizationServer()
    provider.claims['groups'] = Array.from({ length: 400 }, (_, index) => `group ${index} of a long list`)
    expect((await redeem()).answer.json['error']).toBe('server_error')
  })
})

describe('a refresh', () => {
  async function signedIn(front = startAuthorizationServer()) {
    const { form, answer } = await front.redeem()
    const refresh = (token: unknown, changes: Record<string, string> = {}) =>
      front.ask('token', {
        form: {
          grant_type: 'refresh_token',
          refresh_token: String(token),
          client_id: form.client_id,
          ...changes,
        },
      })
    return { ...front, form, answer, refresh }
  }

  it('calls the provider and rotates the token', async () => {
    const { answer, refresh, provider, admit } = await signedIn()
    provider.claims['groups'] = ['changed']
    const next = await refresh(answer.json['refresh_token'])
    expect(next.status).toBe(200)
    expect(provider.requests.at(-1)?.get('refresh_token')).toBe('provider-refresh-1')
    expect(await admit(next.json['access_token'])).toMatchObject({ groups: ['changed'] })
    const third = await refresh(next.json['refresh_token'])
    expect(provider.requests.at(-1)?.get('refresh_token')).toBe('provider-refresh-2')
    expect(third.status).toBe(200)
  })

  it('fails if the provider has ended the login', async () => {
    const { answer, refresh, provider } = await signedIn()
    provider.fails = { status: 400, error: 'invalid_grant' }
    expect((await refresh(answer.json['refresh_token'])).json['error']).toBe('invalid_grant')
  })

  it.each([{ status: 500 }, { status: 401, error: 'invalid_client' }])(
    'may be tried again after the provider failed with %j',
    async (fails) => {
      const { answer, refresh, provider } = await signedIn()
      provider.fails = fails
      const failed = await refresh(answer.json['refresh_token'])
      expect([failed.status, failed.json['error']]).toEqual([503, 'temporarily_unavailable'])
      provider.fails = undefined
      expect((await refresh(answer.json['refresh_token'])).status).toBe(200)
    },
  )

  it('of the same token returns the same response for ten seconds, for parallel requests', async () => {
    const { answer, refresh, provider, clock } = await signedIn()
    const before = provider.requests.length
    const [one, two] = await Promise.all([
      refresh(answer.json['refresh_token']),
      refresh(answer.json['refresh_token']),
    ])
    clock.advance(9_999)
    const three = await refresh(answer.json['refresh_token'])
    expect(new Set([one.text, two.text, three.text]).size).toBe(1)
    expect(provider.requests.length).toBe(before + 1)
  })

  it('of a used token ends the login for attacker and owner', async () => {
    const { answer, refresh, clock, admit } = await signedIn()
    const next = await refresh(answer.json['refresh_token'])
    clock.advance(10_000)
    expect((await refresh(answer.json['refresh_token'])).json['error']).toBe('invalid_grant')
    expect((await refresh(next.json['refresh_token'])).json['error']).toBe('invalid_grant')
    expect(await admit(next.json['access_token'])).toContain('revoked')
  })

  it('requires the client of the token, and no additional scopes', async () => {
    const { answer, refresh, clientId } = await signedIn()
    const other = await clientId()
    const token = answer.json['refresh_token']
    expect((await refresh(token, { client_id: other })).json['error']).toBe('invalid_grant')
    expect((await refresh(token, { scope: 'openid admin' })).json['error']).toBe('invalid_scope')
    expect((await refresh(token, { resource: `${origin}/other` })).json['error']).toBe('invalid_target')
    expect((await refresh(token, { scope: 'mcp' })).status).toBe(200)
  })

  it('is refused if the provider returns another subject', async () => {
    const { answer, refresh, provider } = await signedIn()
    provider.claims['sub'] = 'eve'
    expect((await refresh(answer.json['refresh_token'])).json['error']).toBe('invalid_grant')
  })

  it('is possible for thirty days', async () => {
    const { answer, refresh, clock } = await signedIn()
    clock.advance(30 * 24 * 60 * minuteMs)
    expect((await refresh(answer.json['refresh_token'])).json['error']).toBe('invalid_grant')
  })
})

describe('an unavailable provider', () => {
  it('is reported to the client as temporarily unavailable', async () => {
    const { ask, authorization, provider, upstream } = startAuthorizationServer()
    provider.metadata['issuer'] = 'https://evil.test'
    const page = await ask('authorize', { query: await authorization() })
    const { location } = await ask('consent', { form: { request: requestIn(page.text), decision: 'allow' } })
    expect(location?.searchParams.get('error')).toBe('temporarily_unavailable')
    expect(upstream.count(`${providerIssuer}/token`)).toBe(0)
  })

  it('receives no browser at a URL that is not HTTPS', async () => {
    const { ask, authorization, provider } = startAuthorizationServer()
    provider.metadata['authorization_endpoint'] = 'http://id.test/authorize'
    const page = await ask('authorize', { query: await authorization() })
    const { location } = await ask('consent', { form: { request: requestIn(page.text), decision: 'allow' } })
    expect(location?.searchParams.get('error')).toBe('temporarily_unavailable')
  })
})
