import { describe, expect, it } from 'vitest'
import {
  challenge,
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

describe('a code', () => {
  it('is valid once, and its second use revokes the tokens of the first', async () => {
    const { redeem, ask, admit } = startAuthorizationServer()
    const { form, answer } = await redeem()
    expect(await admit(answer.json['access_token'])).toMatchObject({ sub: 'ada' })
    const again = await ask('token', { form })
    expect([again.status, again.json['error']]).toEqual([400, 'invalid_grant'])
    expect(await admit(answer.json['access_token'])).toContain('revoked')
    const refresh = { grant_type: 'refresh_token', client_id: form.client_id }
    const token = String(answer.json['refresh_token'])
    expect((await ask('token', { form: { ...refresh, refresh_token: token } })).json['error']).toBe(
      'invalid_grant',
    )
  })

  it.each<[string, Record<string, string>]>([
    ['another redirect_uri', { redirect_uri: 'http://127.0.0.1:9999/callback' }],
    ['another verifier', { code_verifier: 'w'.repeat(64) }],
    ['no verifier', { code_verifier: '' }],
    ['the challenge as verifier', { code_verifier: challenge }],
    ['a verifier that is too short', { code_verifier: 'v' }],
    ['another resource', { resource: `${origin}/other` }],
    ['a fragment in the resource', { resource: `${resource}#x` }],
    ['one character changed', { code: 'x' }],
  ])('is refused with %s, and remains valid for its owner', async (_, changes) => {
    const { code, ask } = startAuthorizationServer()
    const granted = await code()
    const form = {
      grant_type: 'authorization_code',
      code: granted.code,
      client_id: granted.parameters.client_id,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
    const stolen = await ask('token', { form: { ...form, ...changes } })
    expect(stolen.status).toBe(400)
    expect(['invalid_grant', 'invalid_target']).toContain(stolen.json['error'])
    expect((await ask('token', { form })).status).toBe(200)
  })

  it('is valid without redirect_uri, as in OAuth 2.1', async () => {
    const { redeem } = startAuthorizationServer()
    expect((await redeem({ redirect_uri: '' })).answer.status).toBe(200)
  })

  it('is refused for another client', async () => {
    const { code, ask, clientId } = startAuthorizationServer()
    const granted = await code()
    const form = {
      grant_type: 'authorization_code',
      code: granted.code,
      client_id: await clientId(),
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
    expect((await ask('token', { form })).json['error']).toBe('invalid_grant')
  })

  it('of the provider is not valid as a code of the gateway', async () => {
    const { ask, clientId, provider } = startAuthorizationServer()
    provider.codes.add('stolen')
    const form = {
      grant_type: 'authorization_code',
      code: 'stolen',
      client_id: await clientId(),
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
    expect((await ask('token', { form })).json['error']).toBe('invalid_grant')
    expect(provider.requests).toEqual([])
  })
})

describe('an authorization request', () => {
  it.each<[string, Record<string, string>, string]>([
    ['without PKCE', { code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
    ['with plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['without a PKCE method', { code_challenge_method: '' }, 'invalid_request'],
    ['with a short challenge', { code_challenge: 'abc' }, 'invalid_request'],
    ['for a token', { response_type: 'token' }, 'unsupported_response_type'],
    ['in a fragment', { response_mode: 'fragment' }, 'invalid_request'],
    ['for another resource', { resource: `${origin}/other` }, 'invalid_target'],
    ['with a huge state', { state: 'x'.repeat(5_000) }, 'invalid_request'],
    ['with a huge scope', { scope: 'x'.repeat(5_000) }, 'invalid_scope'],
    ['with a quoted scope', { scope: 'a"b' }, 'invalid_scope'],
    ['as an object', { request: 'eyJ' }, 'request_not_supported'],
    ['at an address', { request_uri: 'https://x.test/' }, 'request_uri_not_supported'],
    ['without a page', { prompt: 'none' }, 'interaction_required'],
  ])('%s is an error for the client', async (_, changes, error) => {
    const { ask, authorization } = startAuthorizationServer()
    const { status, location } = await ask('authorize', { query: await authorization(changes) })
    expect(status).toBe(303)
    expect(location?.href.startsWith(`${redirectUri}?`)).toBe(true)
    expect(location?.searchParams.get('error')).toBe(error)
    expect(location?.searchParams.get('iss')).toBe(resource)
    expect(location?.searchParams.has('code')).toBe(false)
  })

  it.each<[string, Record<string, string>]>([
    ['an unknown client', { client_id: 'unknown' }],
    ['no client', { client_id: '' }],
    ['a redirect URI of another client', { redirect_uri: 'https://evil.test/cb' }],
    ['a redirect URI with another path', { redirect_uri: 'http://127.0.0.1:3334/callback/../evil' }],
    ['a redirect URI that hides its host', { redirect_uri: 'http://127.0.0.1:3334@evil.test/callback' }],
    ['a script for a redirect URI', { redirect_uri: 'javascript:alert(1)' }],
    ['no redirect URI', { redirect_uri: '' }],
  ])('with %s causes no redirect', async (_, changes) => {
    const { ask, authorization } = startAuthorizationServer()
    const answer = await ask('authorize', { query: await authorization(changes) })
    expect([answer.status, answer.location]).toEqual([400, undefined])
    expect(answer.text).not.toContain('evil')
    expect(answer.text).not.toContain('<form')
  })

  it.each(['client_id', 'redirect_uri'])('with two values of %s causes no redirect', async (name) => {
    const { ask, authorization } = startAuthorizationServer()
    const query = `${new URLSearchParams(await authorization())}&${name}=https%3A%2F%2Fevil.test%2F`
    const answer = await ask('authorize', { query })
    expect([answer.status, answer.location]).toEqual([400, undefined])
  })

  it('with two values of another parameter is an error for the client', async () => {
    const { ask, authorization } = startAuthorizationServer()
    for (const [more, error] of [
      ['&state=2', 'invalid_request'],
      ['&code_challenge=x', 'invalid_request'],
      [`&resource=${origin}`, 'invalid_target'],
    ]) {
      const { location } = await ask('authorize', {
        query: `${new URLSearchParams(await authorization())}${more}`,
      })
      expect(location?.searchParams.get('error')).toBe(error)
    }
  })

  it('cannot split headers or leave the query of the redirect', async () => {
    const { ask, authorization } = startAuthorizationServer()
    const state = 'a\r\nset-cookie: x=1&code=evil#'
    const { location } = await ask('authorize', { query: await authorization({ state, prompt: 'none' }) })
    expect(location?.searchParams.get('state')).toBe(state)
    expect(location?.searchParams.has('code')).toBe(false)
  })

  it('may choose the port on loopback', async () => {
    const { ask, authorization } = startAuthorizationServer()
    const query = await authorization({ redirect_uri: 'http://127.0.0.1:50001/callback' })
    expect((await ask('authorize', { query })).text).toContain('127.0.0.1:50001')
  })
})

describe('an invalid request of a website', () => {
  const site = 'https://chat.test/cb'

  it('causes no redirect to a site that registered itself', async () => {
    const { ask, authorization, register } = startAuthorizationServer()
    const { json } = await register([site])
    const client = { client_id: String(json['client_id']), redirect_uri: site }
    const query = await authorization({ ...client, response_type: 'token', state: '"><b>' })
    const { status, location, text, reply } = await ask('authorize', { query })
    expect([status, location]).toEqual([400, undefined])
    expect(text).toContain(`<a href="${site}?error=unsupported_response_type&amp;`)
    expect(text).toContain('Go back to chat.test')
    expect(text).not.toContain('<b>')
    expect(String(reply.headers['content-security-policy'])).toContain("default-src 'none'")
  })

  it('causes a redirect to a site of the configuration', async () => {
    const { ask, authorization, register } = startAuthorizationServer({ allowedRedirectUris: [site] })
    const { json } = await register([site])
    const client = { client_id: String(json['client_id']), redirect_uri: site }
    const query = await authorization({ ...client, response_type: 'token' })
    const { location } = await ask('authorize', { query })
    expect(location?.href).toContain(`${site}?error=unsupported_response_type`)
  })
})

describe('the consent page', () => {
  it('shows client, target and scopes as text', async () => {
    const { ask, authorization, register } = startAuthorizationServer()
    const name = `<img src=x onerror=alert(1)>"\u202eevil\u3164Z${'\u0301'.repeat(40)}`
    const { json } = await register(['https://evil.test/cb'], { client_name: name })
    const client = { client_id: String(json['client_id']), redirect_uri: 'https://evil.test/cb' }
    const { text, reply } = await ask('authorize', { query: await authorization(client) })
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;&quot; evil Z\u0301\u0301\u0301</strong>')
    expect(text).not.toContain('<img')
    expect(text).not.toContain('\u202e')
    expect(text).toContain('evil.test')
    expect(text).toContain('Its name is not verified')
    expect(text).toContain('openid, mcp')
    expect(text).not.toContain('<script')
    const csp = String(reply.headers['content-security-policy'])
    expect(csp).toContain("default-src 'none'")
    expect(csp).toContain("frame-ancestors 'none'")
    expect(csp).not.toContain('unsafe')
    expect(reply.headers).toMatchObject({
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
    })
    expect(String(reply.headers['set-cookie'])).toMatch(
      /^__Host-tollgate-login=[\w-]{43}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure$/,
    )
  })

  it.each<[string, Record<string, string>]>([
    ['another site', { origin: 'https://evil.test' }],
    ['a sandbox', { origin: 'null' }],
    ['another site, as the browser notes', { 'sec-fetch-site': 'cross-site' }],
    ['a sibling, as the browser notes', { 'sec-fetch-site': 'same-site' }],
  ])('rejects a form of %s', async (_, headers) => {
    const { ask, authorization } = startAuthorizationServer()
    const page = await ask('authorize', { query: await authorization() })
    const form = { request: requestIn(page.text), decision: 'allow' }
    expect((await ask('consent', { form, headers })).status).toBe(403)
    expect(
      (await ask('consent', { form, headers: { origin, 'sec-fetch-site': 'same-origin' } })).status,
    ).toBe(303)
  })

  it('rejects the request of another browser, or without cookies', async () => {
    const front = startAuthorizationServer()
    const { ask, authorization, cookies } = front
    const page = await ask('authorize', { query: await authorization() })
    const form = { request: requestIn(page.text), decision: 'allow' }
    const [name = '', value = ''] = [...cookies][0] ?? []
    cookies.clear()
    expect((await ask('consent', { form })).status).toBe(403)
    cookies.set(name, 'A'.repeat(43))
    expect((await ask('consent', { form })).status).toBe(403)
    cookies.set(name, value)
    expect(
      (await ask('consent', { form, headers: { cookie: `${name}=${value}; ${name}=${value}` } })).status,
    ).toBe(403)
  })

  it.each(['', 'x', 'maybe'])('causes no redirect with the sealed request %j', async (request) => {
    const { ask, authorization } = startAuthorizationServer()
    await ask('authorize', { query: await authorization() })
    const answer = await ask('consent', { form: { request, decision: 'allow' } })
    expect([answer.status, answer.location]).toEqual([400, undefined])
  })

  it('grants nothing without the decision to allow', async () => {
    const { ask, authorization } = startAuthorizationServer()
    const page = await ask('authorize', { query: await authorization() })
    const { location } = await ask('consent', { form: { request: requestIn(page.text) } })
    expect(location?.searchParams.get('error')).toBe('access_denied')
  })
})

describe('the authorization response of the provider', () => {
  async function atProvider() {
    const front = startAuthorizationServer()
    const request = await front.toProvider(await front.authorization())
    return { ...front, answer: front.providerAnswer(request) }
  }

  it('is accepted only from the browser that consented', async () => {
    const { ask, answer, cookies } = await atProvider()
    cookies.clear()
    const other = await ask('callback', { query: answer })
    expect([other.status, other.location]).toEqual([403, undefined])
  })

  it.each<[string, Record<string, string>]>([
    ['of another issuer', { iss: 'https://evil.test' }],
    ['without the iss that the provider always sends', { iss: '' }],
    ['with a state of its own', { state: 'forged' }],
    ['without a state', { state: '' }],
  ])('%s causes no redirect', async (_, changes) => {
    const { ask, answer } = await atProvider()
    const mixed = await ask('callback', { query: { ...answer, ...changes } })
    expect([mixed.status, mixed.location]).toEqual([400, undefined])
  })

  it('is accepted once', async () => {
    const { ask, answer } = await atProvider()
    expect((await ask('callback', { query: answer })).location?.searchParams.has('code')).toBe(true)
    expect((await ask('callback', { query: answer })).status).toBe(400)
  })

  it('with the code of another login is refused by the provider, because each login has its own verifier', async () => {
    const { provider, redeem } = startAuthorizationServer()
    await redeem()
    await redeem()
    const verifiers = provider.requests.map((form) => form.get('code_verifier'))
    expect(new Set(verifiers).size).toBe(2)
  })

  it('without iss is accepted from a provider that sends none', async () => {
    const { ask, answer, provider, clock } = await atProvider()
    delete provider.metadata['authorization_response_iss_parameter_supported']
    clock.advance(minuteMs)
    const { iss: _, ...rest } = answer
    expect((await ask('callback', { query: rest })).location?.searchParams.has('code')).toBe(true)
  })
})

describe('sealed values', () => {
  it('are not valid for another purpose or at another endpoint', async () => {
    const { redeem, code, admit, ask } = startAuthorizationServer()
    const { form, answer } = await redeem()
    const granted = await code()
    for (const value of [answer.json['refresh_token'], granted.code, form.client_id])
      expect(await admit(value)).toContain('unknown or expired')
    const swapped = [
      {
        grant_type: 'refresh_token',
        refresh_token: String(answer.json['access_token']),
        client_id: form.client_id,
      },
      { ...form, code: String(answer.json['refresh_token']) },
      { ...form, code: form.client_id },
    ]
    for (const each of swapped)
      expect((await ask('token', { form: each })).json['error']).toBe('invalid_grant')
    const other = startAuthorizationServer({ resourceMetadata: { resource: `${origin}/other` } })
    expect(await other.admit(answer.json['access_token'])).toContain('unknown or expired')
  })

  it('are refused after any change', async () => {
    const { redeem, admit } = startAuthorizationServer()
    const token = String((await redeem()).answer.json['access_token'])
    for (let index = 0; index < token.length; index += 97) {
      const changed = `${token.slice(0, index)}${token[index] === 'A' ? 'B' : 'A'}${token.slice(index + 1)}`
      expect(await admit(changed)).toContain('mcp-authentication')
    }
    expect(await admit(`${token}=`)).toContain('unknown or expired')
    expect(await admit('x'.repeat(100_000))).toContain('too long')
  })
})

describe('a registration', () => {
  it.each([
    [undefined],
    [[]],
    [['javascript:alert(1)']],
    [['http://chat.test/cb']],
    [['https://chat.test/cb#x']],
    [['https://chat.test/cb', 7]],
    [Array.from({ length: 11 }, (_, index) => `https://chat.test/${index}`)],
    [
      [
        `https://chat.test/${'x'.repeat(500)}`,
        `https://chat.test/${'y'.repeat(500)}`,
        `https://chat.test/zzzz`,
      ],
    ],
  ])('with redirect_uris %j is refused', async (uris) => {
    const { register } = startAuthorizationServer()
    const { status, json } = await register(uris === undefined ? null : uris)
    expect([status, json['error']]).toEqual([400, 'invalid_redirect_uri'])
  })

  it('is restricted by allowedRedirectUris, also later', async () => {
    const wide = startAuthorizationServer()
    const { json } = await wide.register(['https://chat.test/cb'])
    const client = { client_id: String(json['client_id']), redirect_uri: 'https://chat.test/cb' }
    const narrow = startAuthorizationServer({ allowedRedirectUris: ['http://127.0.0.1:*/callback'] })
    expect((await narrow.register(['https://chat.test/cb'])).status).toBe(400)
    expect((await narrow.register()).status).toBe(201)
    expect((await narrow.ask('authorize', { query: await narrow.authorization(client) })).status).toBe(400)
  })

  it.each(['nonsense', '[]', '"x"', ''])('that is not an object is refused: %s', async (body) => {
    const { status, json } = await startAuthorizationServer().ask('register', { method: 'POST', body })
    expect([status, json['error']]).toEqual([400, 'invalid_client_metadata'])
  })

  it('with other grants is refused', async () => {
    const { register } = startAuthorizationServer()
    expect((await register([redirectUri], { grant_types: ['client_credentials'] })).status).toBe(400)
    expect((await register([redirectUri], { response_types: ['token'] })).status).toBe(400)
  })

  it('uses no memory, and is limited per address', async () => {
    const { register, ask, clock } = startAuthorizationServer()
    const statuses = new Map<number, number>()
    for (let index = 0; index < 200; index += 1) {
      const { status } = await register()
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect(Object.fromEntries(statuses)).toEqual({ 201: 120, 429: 80 })
    const body = JSON.stringify({ redirect_uris: [redirectUri] })
    expect((await ask('register', { method: 'POST', body, address: '198.51.100.7' })).status).toBe(201)
    clock.advance(1_000)
    expect((await register()).status).toBe(201)
  })

  it('limit does not count logins that succeed', async () => {
    const { code, clientId } = startAuthorizationServer()
    const client_id = await clientId()
    for (let index = 0; index < 60; index += 1) expect((await code({ client_id })).code).not.toBe('')
  })

  it('limit does not count successful token requests', async () => {
    const { redeem, ask, provider } = startAuthorizationServer()
    const { form, answer } = await redeem()
    let token = String(answer.json['refresh_token'])
    for (let index = 0; index < 150; index += 1) {
      const refresh = { grant_type: 'refresh_token', refresh_token: token, client_id: form.client_id }
      const { status, json } = await ask('token', { form: refresh })
      expect(status).toBe(200)
      token = String(json['refresh_token'])
    }
    provider.fails = { status: 400, error: 'invalid_grant' }
    const statuses: number[] = []
    for (let index = 0; index < 130; index += 1) statuses.push((await ask('token', { form })).status)
    expect(statuses.at(-1)).toBe(429)
  })

  it('counts addresses of one IPv6 network together', async () => {
    const { ask } = startAuthorizationServer()
    const body = JSON.stringify({ redirect_uris: [redirectUri] })
    const from = (address: string) => ask('register', { method: 'POST', body, address })
    for (let index = 0; index < 120; index += 1) await from(`2001:4860:1:2::${index.toString(16)}`)
    expect((await from('2001:4860:1:2:ffff::1')).status).toBe(429)
    expect((await from('2001:4860:1:3::1')).status).toBe(201)
  })

  it('over the size limit is refused', async () => {
    const body = JSON.stringify({ redirect_uris: [redirectUri], x: 'x'.repeat(70_000) })
    await expect(startAuthorizationServer().ask('register', { method: 'POST', body })).rejects.toMatchObject({
      code: 'request_too_large',
    })
  })
})

describe('the token endpoint', () => {
  it.each<[string, Record<string, string>, string]>([
    ['no client', { client_id: '' }, 'invalid_request'],
    ['an unknown client', { client_id: 'unknown' }, 'invalid_client'],
    ['the client of the gateway', { client_id: 'the-gateway' }, 'invalid_client'],
    ['another grant', { grant_type: 'client_credentials' }, 'unsupported_grant_type'],
    ['a password', { grant_type: 'password' }, 'unsupported_grant_type'],
    ['no grant', { grant_type: '' }, 'unsupported_grant_type'],
    ['no refresh token', { grant_type: 'refresh_token' }, 'invalid_grant'],
  ])('refuses %s', async (_, changes, error) => {
    const { redeem } = startAuthorizationServer()
    const { answer } = await redeem(changes)
    expect([answer.status, answer.json['error']]).toEqual([400, error])
    expect(answer.reply.headers).toMatchObject({
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
    })
  })

  it('refuses JSON and repeated parameters', async () => {
    const { ask } = startAuthorizationServer()
    const json = await ask('token', {
      method: 'POST',
      body: '{"grant_type":"refresh_token"}',
      headers: { 'content-type': 'application/json' },
    })
    expect(json.json['error']).toBe('invalid_request')
    const twice = await ask('token', {
      form: 'grant_type=refresh_token&grant_type=authorization_code&client_id=x',
    })
    expect(twice.json['error']).toBe('invalid_request')
  })

  it('logs no secret with a refusal', async () => {
    const { redeem } = startAuthorizationServer()
    const { answer, form } = await redeem({ code_verifier: 'w'.repeat(64) })
    expect(answer.refusedBy).toBe('mcp-authentication: invalid_grant')
    expect(answer.refusedBy).not.toContain(form.code)
  })
})

it('endpoints are below the prefix of the MCP endpoint for every host of the request', async () => {
  const { toProvider, authorization } = startAuthorizationServer()
  const url = await toProvider(await authorization())
  expect(url.searchParams.get('redirect_uri')).toBe(`${endpoints}/callback`)
  expect(url.origin).toBe(providerIssuer)
})
