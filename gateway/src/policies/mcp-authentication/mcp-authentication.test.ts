import { describe, expect, it } from 'vitest'
import {
  audience,
  issuer,
  keySetOf,
  signingPair,
  signToken,
  throughAll,
  upstreamContext,
} from '../../../test/fixtures/jwt.ts'
import { type FixtureContext, fixtureExchange, textOf } from '../../../test/fixtures/pipeline.ts'
import { compileAuthentication } from '../../identity/authentication.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { McpAuthenticationConfig } from './config.ts'
import { compileMcpAuthentication } from './mcp-authentication.ts'

const keysUrl = 'https://id.example.com:8443/realms/main/protocol/openid-connect/certs'
const first = signingPair('first')
const second = signingPair('second')
const base: McpAuthenticationConfig = {
  issuer,
  audiences: [audience],
  provider: { keycloak: {} },
  resourceMetadata: { resource: audience, scopesSupported: ['openid', 'mcp'] },
}

function authenticationOf(config: McpAuthenticationConfig, context: FixtureContext): Policy {
  return compileAuthentication('token', [compileMcpAuthentication(config, context).check])
}

function setUp(changed: Partial<McpAuthenticationConfig> = {}) {
  const { context, upstream } = upstreamContext()
  context.clock.advance(1_700_000_000_000)
  upstream.answers.set(keysUrl, { text: keySetOf(first) })
  const compile = (config: Partial<McpAuthenticationConfig> = changed) =>
    authenticationOf({ ...base, ...config }, context)
  const authentication = compile()
  return {
    clock: context.clock,
    context,
    upstream,
    compile,
    sign: (pair = first, claims = {}) => signToken(pair, context.clock.now(), claims),
    async send(authorization?: string, request: Partial<RequestFacts> = {}) {
      const headers = authorization === undefined ? {} : { authorization }
      const exchange = fixtureExchange({ path: '/mcp', host: 'gw.test', headers, ...request })
      const reply = await throughAll([authentication], exchange)
      return { reply, exchange, status: reply.status }
    },
  }
}

const body = '{"error":"unauthorized","error_description":"JWT token required"}'
const challenge =
  'Bearer resource_metadata="http://localhost:3000/.well-known/oauth-protected-resource/mcp", scope="openid mcp"'

function expectUnauthorized(reply: Reply, header: string) {
  expect(reply.status).toBe(401)
  expect(textOf(reply)).toBe(body)
  expect(reply.headers).toEqual({ 'content-type': 'application/json', 'www-authenticate': header })
}

describe('a request with a valid token', () => {
  it('passes with the claims, and without the token', async () => {
    const { sign, send } = setUp()
    const { exchange, status } = await send(`bearer ${await sign(first, { groups: ['staff'] })}`)
    expect(status).toBe(200)
    expect(exchange.facts.jwt).toMatchObject({ sub: 'ada', groups: ['staff'] })
    expect(exchange.facts.request.headers).toEqual({})
  })

  it('passes synchronously the second time', async () => {
    const { sign, send, compile } = setUp()
    const token = await sign()
    await send(`Bearer ${token}`)
    const exchange = fixtureExchange({ headers: { authorization: `Bearer ${token}` } })
    expect(compile().onRequest?.(exchange)).toBeUndefined()
    expect(exchange.facts.jwt).toMatchObject({ sub: 'ada' })
  })

  it('may contain it at the configured location', async () => {
    const { sign, send } = setUp({ authorizationLocation: { header: { name: 'X-Token' } } })
    const token = await sign()
    const { exchange, status } = await send(undefined, { headers: { 'x-token': token } })
    expect(status).toBe(200)
    expect(exchange.facts.request.headers).toEqual({})
    expect((await send(`Bearer ${token}`)).status).toBe(401)
  })
})

describe('a request without a valid token', () => {
  it('is refused with the resource metadata, and without a reason', async () => {
    const { sign, send, clock } = setUp()
    const { reply, exchange } = await send()
    expectUnauthorized(reply, challenge)
    expect(exchange.log.refusedBy).toBe('mcp-authentication: no token')
    const bad = [
      await sign(second),
      await sign(first, { aud: 'someone else' }),
      await sign(first, { iss: 'https://evil.test' }),
      await sign(first, { exp: Math.floor(clock.now() / 1000) - 3600 }),
      'nonsense',
    ]
    for (const token of bad) {
      expectUnauthorized((await send(`Bearer ${token}`)).reply, `${challenge}, error="invalid_token"`)
    }
  })

  it('logs the reason', async () => {
    const { sign, send } = setUp()
    const { exchange } = await send(`Bearer ${await sign(first, { aud: 'someone else' })}`)
    expect(exchange.log.refusedBy).toBe('mcp-authentication: claim aud')
  })

  it('passes in optional mode only without any, in permissive mode always', async () => {
    const optional = setUp({ mode: 'optional' })
    expect((await optional.send()).status).toBe(200)
    expect((await optional.send('Bearer nonsense')).status).toBe(401)
    const permissive = setUp({ mode: 'permissive' })
    const { status, exchange } = await permissive.send('Bearer nonsense')
    expect(status).toBe(200)
    expect(exchange.facts.jwt).toBeUndefined()
    const { exchange: known } = await permissive.send(`Bearer ${await permissive.sign()}`)
    expect(known.facts.jwt).toMatchObject({ sub: 'ada' })
  })

  it('receives metadata of its own host if no resource is configured', async () => {
    const { send } = setUp({ resourceMetadata: {} })
    const { reply } = await send(undefined, { host: 'gw.test:3000', path: '/mcp' })
    expect(reply.headers['www-authenticate']).toBe(
      'Bearer resource_metadata="http://gw.test:3000/.well-known/oauth-protected-resource/mcp"',
    )
  })

  it("receives metadata of the proxy's host if its headers are trusted", async () => {
    const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'gw.example.com' }
    const { send } = setUp({ resourceMetadata: {}, trustForwardedHeaders: true })
    const { reply } = await send(undefined, { host: 'inner:3000', path: '/mcp', headers })
    expect(reply.headers['www-authenticate']).toContain('="https://gw.example.com/.well-known/')
  })
})

describe('the keys of the provider', () => {
  it('may rotate: a new key id causes a fetch', async () => {
    const { sign, send, upstream } = setUp()
    expect((await send(`Bearer ${await sign()}`)).status).toBe(200)
    upstream.answers.set(keysUrl, { text: keySetOf(second) })
    expect((await send(`Bearer ${await sign(second)}`)).status).toBe(200)
    for (let round = 0; round < 3; round += 1) expect((await send(`Bearer ${await sign()}`)).status).toBe(401)
    expect(upstream.count(keysUrl)).toBe(3)
  })

  it('may be unavailable at start: 503 with a token, 401 without, until they recover', async () => {
    const { sign, send, upstream, clock } = setUp()
    upstream.answers.delete(keysUrl)
    const token = await sign()
    const { reply, exchange } = await send(`Bearer ${token}`)
    expect(reply.status).toBe(503)
    expect(reply.headers['retry-after']).toBe('1')
    expect(exchange.log.refusedBy).toBe('mcp-authentication: no keys yet')
    expect((await send()).status).toBe(401)
    expect((await send('Bearer nonsense')).status).toBe(401)
    upstream.answers.set(keysUrl, { text: keySetOf(first) })
    clock.advance(1_000)
    expect((await send(`Bearer ${token}`)).status).toBe(200)
  })

  it('are required in every mode except permissive', async () => {
    for (const [mode, status] of [
      ['optional', 503],
      ['permissive', 200],
    ] as const) {
      const { sign, send, upstream } = setUp({ mode })
      upstream.answers.delete(keysUrl)
      const { exchange, ...outcome } = await send(`Bearer ${await sign()}`)
      expect(outcome.status).toBe(status)
      expect(exchange.facts.jwt).toBeUndefined()
    }
  })

  it('and verified tokens survive unrelated reloads', async () => {
    const { sign, send, upstream, compile } = setUp()
    const token = await sign()
    await send(`Bearer ${token}`)
    const authentication = compile({ mode: 'optional', clientId: 'new' })
    const exchange = fixtureExchange({ headers: { authorization: `Bearer ${token}` } })
    expect(authentication.onRequest?.(exchange)).toBeUndefined()
    expect(upstream.count(keysUrl)).toBe(1)
  })

  it('survive a reload that changes the rules, but tokens are verified again', async () => {
    const { sign, send, upstream, compile } = setUp()
    const token = await sign()
    await send(`Bearer ${token}`)
    const authentication = compile({ audiences: ['someone else'] })
    const reply = await throughAll(
      [authentication],
      fixtureExchange({ headers: { authorization: `Bearer ${token}` } }),
    )
    expect(reply.status).toBe(401)
    expect(upstream.count(keysUrl)).toBe(1)
  })

  it.each([
    ['an address', 'https://keys.example.com/x'],
    ['an address in an object', { url: 'https://keys.example.com/x' }],
  ])('may be at %s', async (_, jwks) => {
    const { sign, send, upstream } = setUp({ jwks })
    upstream.answers.set('https://keys.example.com/x', { text: keySetOf(second) })
    expect((await send(`Bearer ${await sign(second)}`)).status).toBe(200)
    expect(upstream.count(keysUrl)).toBe(0)
  })

  it.each([
    ['as text', keySetOf(second)],
    ['inline', { inline: keySetOf(second) }],
  ])('may be in the configuration %s', async (_, jwks) => {
    const { sign, send, upstream } = setUp({ jwks })
    expect((await send(`Bearer ${await sign(second)}`)).status).toBe(200)
    expect((await send(`Bearer ${await sign()}`)).status).toBe(401)
    expect(upstream.requests).toEqual([])
  })

  it('may be in a file, which must be a key set', async () => {
    const { context, sign } = setUp()
    const files: Record<string, string> = { good: keySetOf(first), empty: '{"keys":[]}', none: 'x' }
    const compileWith = (file: string) =>
      authenticationOf({ ...base, jwks: { file } }, { ...context, readFile: (path) => files[path] ?? '' })
    const exchange = fixtureExchange({ headers: { authorization: `Bearer ${await sign()}` } })
    expect((await throughAll([compileWith('good')], exchange)).status).toBe(200)
    expect(() => compileWith('empty')).toThrow('must contain a key that can verify tokens')
    expect(() => compileWith('none')).toThrow('must be a JSON Web Key Set')
  })
})
