import { describe, expect, it } from 'vitest'
import {
  fakeUpstream,
  issuer,
  keySetOf,
  type SigningPair,
  signingPair,
  signToken,
  throughAll,
} from '../../../test/fixtures/jwt.ts'
import { fixtureContext, fixtureExchange, textOf } from '../../../test/fixtures/pipeline.ts'
import { firstHeader } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { OidcConfig } from './config.ts'
import { compileOidc } from './oidc.ts'

const pair = signingPair('k')
const stranger = signingPair('k')
const origin = new URL(issuer).origin

type Claims = Record<string, unknown>

/** A provider without sockets, whose replies a test replaces. */
function setup(config: Partial<OidcConfig> = {}) {
  const context = fixtureContext()
  context.clock.advance(Date.now())
  const upstream = fakeUpstream()
  const warnings: unknown[] = []
  const policy = compileOidc(
    { issuer, clientId: 'gateway', clientSecret: 'secret', ...config },
    {
      ...context,
      send: upstream.send,
      log: { ...context.log, warn: (fields, message) => warnings.push([message, fields]) },
    },
    'route app',
  )
  const metadata = {
    ...{ issuer, jwks_uri: `${origin}/keys`, authorization_endpoint: `${origin}/authorize` },
    ...{ token_endpoint: `${origin}/token`, userinfo_endpoint: `${origin}/userinfo` },
  }
  const json = (value: unknown, status = 200) => ({
    status,
    headers: { 'content-type': 'application/json' },
    text: JSON.stringify(value),
  })
  const serve = (path: string, value: unknown, status?: number) =>
    upstream.answers.set(`${origin}${path}`, json(value, status))
  serve('/realms/main/.well-known/openid-configuration', metadata)
  upstream.answers.set(`${origin}/keys`, { text: keySetOf(pair) })
  serve('/userinfo', { sub: 'ada', email: 'ada@example.com' })

  const visit = (path: string, query = '', cookie = '') => {
    const headers = { accept: 'text/html', ...(cookie !== '' && { cookie }) }
    const request = { method: 'GET', host: 'gw.test', path, query, headers }
    const exchange = fixtureExchange(request)
    exchange.errorFormat = 'text'
    return throughAll([policy], exchange).then((reply) => ({ reply, exchange }))
  }

  /** Starts a login; returns its parameters and its cookie. */
  async function start() {
    const { reply } = await visit('/app', '?page=2')
    const location = new URL(firstHeader(reply.headers, 'location') ?? '')
    const nonce = location.searchParams.get('nonce') ?? ''
    return { location, nonce, state: location.searchParams.get('state') ?? '', cookie: cookieOf(reply) }
  }

  async function idToken(nonce: string, claims: Claims = {}, signer: SigningPair = pair) {
    return signToken(signer, context.clock.now(), {
      ...{ aud: 'gateway', nonce, iat: Math.floor(context.clock.now() / 1_000) },
      ...claims,
    })
  }

  return { ...{ context, upstream, warnings, metadata, serve, visit, start, idToken, policy } }
}

function cookieOf(reply: Reply): string {
  return [reply.headers['set-cookie'] ?? []]
    .flat()
    .filter((line) => !line.includes('Max-Age=0'))
    .map((line) => line.split(';', 1)[0])
    .join('; ')
}

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const tokens = (idToken: string) => ({ access_token: 'access', token_type: 'Bearer', id_token: idToken })

describe('a login', () => {
  it('ends with a session whose claims are those of the ID token and of UserInfo', async () => {
    const { serve, visit, start, idToken } = setup()
    const { nonce, state, cookie } = await start()
    serve('/token', tokens(await idToken(nonce, { email: 'signed@example.com', big: 1 })))
    serve('/userinfo', { sub: 'ada', email: 'other@example.com', name: 'Ada' })
    const { reply } = await visit('/oauth/callback', `?code=c&state=${state}`, cookie)
    expect([reply.status, reply.headers['location']]).toEqual([303, '/app?page=2'])
    const { exchange } = await visit('/app', '', cookieOf(reply))
    expect(exchange.facts.jwt).toMatchObject({ sub: 'ada', email: 'signed@example.com', name: 'Ada', big: 1 })
    expect(exchange.facts.jwt).not.toHaveProperty('nonce')
    expect(exchange.auth.session?.isEnded?.()).toBe(false)
    // A connection that this request has opened ends.
    await visit('/oauth/callback/logout', '', cookieOf(reply))
    expect(exchange.auth.session?.isEnded?.()).toBe(true)
    expect(exchange.auth.session).toMatchObject({ logoutPath: '/oauth/callback/logout' })
  })

  it.each<[string, Claims]>([
    ['another nonce', { nonce: 'other' }],
    ['no nonce', { nonce: undefined }],
    ['another audience', { aud: 'other' }],
    ['several audiences without this client as azp', { aud: ['gateway', 'other'], azp: 'other' }],
    ['another issuer', { iss: 'https://evil.test' }],
    ['an end in the past', { exp: 1_000_000 }],
    ['no end', { exp: undefined }],
    ['no subject', { sub: undefined }],
  ])('is refused with an ID token that has %s', async (_, claims) => {
    const { serve, visit, start, idToken } = setup()
    const { nonce, state, cookie } = await start()
    serve('/token', tokens(await idToken(nonce, claims)))
    const { reply } = await visit('/oauth/callback', `?code=c&state=${state}`, cookie)
    expect(reply.status).toBe(403)
    expect(cookieOf(reply)).toBe('')
  })

  it('is refused with an ID token of another key or without a signature', async () => {
    for (const forge of [
      (nonce: string, own: ReturnType<typeof setup>) => own.idToken(nonce, {}, stranger),
      async (nonce: string) => {
        const now = Math.floor(Date.now() / 1_000)
        const claims = { iss: issuer, aud: 'gateway', sub: 'ada', nonce, iat: now, exp: now + 300 }
        return `${encoded({ alg: 'none' })}.${encoded(claims)}.`
      },
    ]) {
      const own = setup()
      const { nonce, state, cookie } = await own.start()
      own.serve('/token', tokens(await forge(nonce, own)))
      const { reply } = await own.visit('/oauth/callback', `?code=c&state=${state}`, cookie)
      expect([reply.status, cookieOf(reply)]).toEqual([403, ''])
    }
  })

  it('is refused with claims of another user at UserInfo, and without an ID token', async () => {
    const one = setup()
    const first = await one.start()
    one.serve('/token', tokens(await one.idToken(first.nonce)))
    one.serve('/userinfo', { sub: 'eve' })
    const other = await one.visit('/oauth/callback', `?code=c&state=${first.state}`, first.cookie)
    expect(other.reply.status).toBe(403)
    const two = setup()
    const second = await two.start()
    two.serve('/token', { access_token: 'access', token_type: 'Bearer' })
    const none = await two.visit('/oauth/callback', `?code=c&state=${second.state}`, second.cookie)
    expect(none.reply.status).toBe(403)
  })

  it('is refused with an issuer of the response that is not the provider', async () => {
    const { serve, visit, start, idToken } = setup()
    const { nonce, state, cookie } = await start()
    serve('/token', tokens(await idToken(nonce)))
    const { reply } = await visit('/oauth/callback', `?code=c&state=${state}&iss=https://evil.test`, cookie)
    expect(reply.status).toBe(403)
  })

  it.each<[string, number, (own: ReturnType<typeof setup>) => void]>([
    ['an error of the server', 503, ({ serve }) => serve('/token', { error: 'server_error' }, 500)],
    ['a wrong client secret', 503, ({ serve }) => serve('/token', { error: 'invalid_client' }, 401)],
    ['an invalid code', 403, ({ serve }) => serve('/token', { error: 'invalid_grant' }, 400)],
    ['no response', 503, ({ upstream }) => upstream.answers.delete(`${origin}/token`)],
    [
      'a page',
      403,
      ({ upstream }) =>
        upstream.answers.set(`${origin}/token`, { headers: { 'content-type': 'text/html' }, text: '<p>' }),
    ],
    [
      'a redirect',
      503,
      ({ upstream }) =>
        upstream.answers.set(`${origin}/token`, { status: 302, headers: { location: '/x' }, text: '' }),
    ],
    [
      'a body without an end',
      503,
      ({ upstream }) => upstream.answers.set(`${origin}/token`, { text: 'x'.repeat(300_000) }),
    ],
  ])('denies after a token response that is %s', async (_, status, prepare) => {
    const own = setup()
    const { state, cookie } = await own.start()
    prepare(own)
    const { reply } = await own.visit('/oauth/callback', `?code=secret-code&state=${state}`, cookie)
    expect([reply.status, cookieOf(reply)]).toEqual([status, ''])
    const shown = textOf(reply) + JSON.stringify(own.warnings)
    for (const secret of ['secret-code', state, 'access']) expect(shown).not.toContain(secret)
  })

  it.each([
    ['another issuer', { issuer: 'https://evil.test' }],
    ['an endpoint without TLS', { authorization_endpoint: 'http://id.example.com/authorize' }],
    ['an endpoint with a script', { authorization_endpoint: 'javascript:alert(1)' }],
  ])('does not start with metadata that has %s', async (_, change) => {
    const { serve, visit, metadata } = setup()
    serve('/realms/main/.well-known/openid-configuration', { ...metadata, ...change })
    const { reply } = await visit('/app')
    expect([reply.status, reply.headers['location']]).toEqual([503, undefined])
  })

  it('sends the client secret to configured endpoints only', async () => {
    const { serve, visit, start, metadata, upstream } = setup()
    serve('/realms/main/.well-known/openid-configuration', {
      ...metadata,
      token_endpoint: 'http://id.example.com/token',
    })
    const { state, cookie } = await start()
    const { reply } = await visit('/oauth/callback', `?code=c&state=${state}`, cookie)
    expect(reply.status).toBe(503)
    expect(upstream.requests.map((request) => request.origin + request.path)).toEqual([
      `${origin}/realms/main/.well-known/openid-configuration`,
    ])
  })

  it('needs no discovery with configured endpoints', async () => {
    const { serve, visit, start, idToken, upstream } = setup({
      authorizationEndpoint: `${origin}/authorize`,
      tokenEndpoint: `${origin}/token`,
      tokenEndpointAuth: 'clientSecretPost',
      jwks: keySetOf(pair),
    })
    const { nonce, state, cookie } = await start()
    serve('/token', tokens(await idToken(nonce)))
    const { reply } = await visit('/oauth/callback', `?code=c&state=${state}`, cookie)
    expect(reply.status).toBe(303)
    expect(upstream.requests.map(({ path }) => path)).toEqual(['/token'])
    const [request] = upstream.requests
    expect(String(request?.body)).toContain('client_secret=secret')
    expect(request?.headers).not.toHaveProperty('authorization')
  })

  it('stores many claims in several cookies, and refuses too many', async () => {
    const groups = (count: number) => Array.from({ length: count }, (_, index) => `group-${index}`)
    const attempt = async (count: number, config: Partial<OidcConfig> = {}) => {
      const { serve, visit, start, idToken } = setup(config)
      const { nonce, state, cookie } = await start()
      serve('/token', tokens(await idToken(nonce)))
      serve('/userinfo', { sub: 'ada', groups: groups(count) })
      const { reply } = await visit('/oauth/callback', `?code=c&state=${state}`, cookie)
      const own = cookieOf(reply)
      return {
        reply,
        cookies: own.split('; ').length,
        jwt: (await visit('/app', '', own)).exchange.facts.jwt,
      }
    }
    const many = await attempt(500)
    expect([many.cookies, many.jwt?.['groups']]).toEqual([3, groups(500)])
    const tooMany = await attempt(2_000)
    expect([tooMany.reply.status, textOf(tooMany.reply)]).toEqual([
      500,
      expect.stringContaining('oidc.claims'),
    ])
    const restricted = await attempt(2_000, { claims: ['email'] })
    expect([restricted.cookies, restricted.jwt]).toEqual([1, { iss: issuer, sub: 'ada', aud: 'gateway' }])
  })
})
