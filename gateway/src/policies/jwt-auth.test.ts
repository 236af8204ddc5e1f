import { describe, expect, it } from 'vitest'
import {
  audience,
  issuer,
  keySetOf,
  signingPair,
  signToken,
  throughAll,
  upstreamContext,
} from '../../test/fixtures/jwt.ts'
import { fixtureExchange, textOf } from '../../test/fixtures/pipeline.ts'
import { compileAuthentication } from '../identity/authentication.ts'
import type { RequestFacts } from '../pipeline/exchange.ts'
import { check } from '../schema/check.ts'
import { checkJwtAuth, compileJwtAuth, type JwtAuthConfig, jwtAuthSchema } from './jwt-auth.ts'

const keysUrl = 'https://id.example.com/keys'
const first = signingPair('first')
const second = signingPair('second')
const single = { issuer, audiences: [audience], jwks: keysUrl }
const other = {
  issuer: 'https://other.test',
  audiences: ['other audience'],
  jwks: { inline: keySetOf(second) },
}

function setUp(config: JwtAuthConfig = single) {
  const { context, upstream } = upstreamContext()
  context.clock.advance(1_700_000_000_000)
  upstream.answers.set(keysUrl, { text: keySetOf(first) })
  const policy = compileAuthentication('token', [compileJwtAuth(config, context)])
  return {
    context,
    upstream,
    sign: (pair = first, claims = {}) => signToken(pair, context.clock.now(), claims),
    async send(headers: Record<string, string> = {}, request: Partial<RequestFacts> = {}) {
      const exchange = fixtureExchange({ headers, ...request })
      const reply = await throughAll([policy], exchange)
      return { reply, exchange, status: reply.status, left: exchange.facts.request.headers }
    },
  }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

function mistakes(config: unknown): string[] {
  const checked = check(jwtAuthSchema, config)
  if (checked.kind === 'mistakes') return checked.mistakes.map(({ path }) => path.join('.'))
  const found: string[] = []
  checkJwtAuth(checked.value, (path) => found.push(path.join('.')))
  return found
}

describe('a request with a valid token', () => {
  it('passes with its claims, and without the token', async () => {
    const { sign, send } = setUp()
    const { status, exchange, left } = await send(bearer(await sign(first, { groups: ['staff'] })))
    expect(status).toBe(200)
    expect(exchange.facts.jwt).toMatchObject({ sub: 'ada', groups: ['staff'] })
    expect(left).toEqual({})
  })

  it('may carry it in a configured location', async () => {
    const { sign, send } = setUp({ ...single, location: { header: { name: 'x-token' } } })
    const token = await sign()
    expect((await send({ 'x-token': token, accept: '*/*' })).left).toEqual({ accept: '*/*' })
    expect((await send(bearer(token))).status).toBe(401)
  })
})

describe('a request without a valid token', () => {
  it('is refused in the format of the route, without a reason', async () => {
    const { sign, send } = setUp()
    const bad = [
      await sign(second),
      await sign(first, { aud: 'x' }),
      await sign(first, { exp: 1 }),
      'nonsense',
    ]
    for (const token of bad) {
      const { reply, exchange } = await send(bearer(token))
      expect(reply.status).toBe(401)
      expect(reply.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
      expect(JSON.parse(textOf(reply))).toMatchObject({
        error: {
          message: 'authentication failure: the token is invalid or malformed',
          code: 'invalid_token',
        },
      })
      expect(exchange.facts.jwt).toBeUndefined()
    }
  })

  it('receives a challenge when it has none', async () => {
    const { reply, exchange } = await setUp().send()
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toBe('Bearer')
    expect(textOf(reply)).toContain('authentication failure: no bearer token found')
    expect(exchange.log.refusedBy).toBe('jwt: no token')
  })

  it('passes without claims when the mode permits', async () => {
    const optional = setUp({ ...single, mode: 'optional' })
    expect((await optional.send()).status).toBe(200)
    expect((await optional.send(bearer('nonsense'))).status).toBe(401)
    const permissive = setUp({ ...single, mode: 'permissive' })
    expect((await permissive.send()).status).toBe(200)
    const { status, exchange, left } = await permissive.send(bearer('nonsense'))
    expect(status).toBe(200)
    expect(exchange.facts.jwt).toBeUndefined()
    expect(left).toEqual(bearer('nonsense'))
  })
})

describe('while there are no keys', () => {
  it('replies 503 instead of rejecting the token', async () => {
    const { upstream, sign, send } = setUp()
    upstream.answers.delete(keysUrl)
    const { reply, exchange } = await send(bearer(await sign()))
    expect(reply.status).toBe(503)
    expect(reply.headers['retry-after']).toBe('1')
    expect(exchange.log.refusedBy).toBe('jwt: no keys yet')
  })
})

describe('several issuers', () => {
  const { jwks: _, ...withoutKeys } = single
  const config: JwtAuthConfig = { providers: [{ ...withoutKeys, jwks: keysUrl }, other] }

  it('are selected by the token, each with its keys and audiences', async () => {
    const { sign, send } = setUp(config)
    const ofOther = { iss: other.issuer, aud: 'other audience' }
    expect((await send(bearer(await sign()))).status).toBe(200)
    expect((await send(bearer(await sign(second, ofOther)))).exchange.facts.jwt).toMatchObject(ofOther)
    const mixed = [
      await sign(first, ofOther),
      await sign(second),
      await sign(second, { ...ofOther, aud: audience }),
      await sign(first, { aud: 'other audience' }),
    ]
    for (const token of mixed) expect((await send(bearer(token))).status).toBe(401)
  })

  it('refuse tokens of any other, and those that name none', async () => {
    const { sign, send } = setUp(config)
    const unknown = await send(bearer(await sign(first, { iss: 'https://evil.test' })))
    expect(unknown.status).toBe(401)
    expect(unknown.exchange.log.refusedBy).toBe('jwt: unknown issuer')
    for (const token of [
      await sign(first, { iss: undefined }),
      await sign(first, { iss: 7 }),
      'a.b.c',
      '...',
    ]) {
      expect((await send(bearer(token))).status).toBe(401)
    }
  })
})

describe('audiences', () => {
  it('of any kind are accepted only if configured', async () => {
    const { sign, send } = setUp({ ...single, audiences: ['*'] })
    expect((await send(bearer(await sign(first, { aud: 'x' })))).status).toBe(200)
    expect((await send(bearer(await sign(first, { aud: undefined })))).status).toBe(200)
    expect((await send(bearer(await sign(first, { iss: 'x' })))).status).toBe(401)
    expect(mistakes({ ...single, audiences: ['*', 'a'] })).toEqual(['audiences'])
  })

  it('have to be named', () => {
    expect(mistakes({ issuer, jwks: keysUrl })).toEqual(['audiences'])
    expect(mistakes({ ...single, audiences: [] })).toEqual(['audiences'])
  })
})

describe('checking', () => {
  it('accepts both forms', () => {
    expect(mistakes({ mode: 'optional', ...single })).toEqual([])
    expect(mistakes({ providers: [single, other], location: { cookie: { name: 'token' } } })).toEqual([])
  })

  it('reports where the mistake is', () => {
    expect(mistakes({ ...single, jwks: 'nonsense' })).toEqual(['jwks'])
    expect(mistakes({ providers: [single, { ...other, jwks: { inline: '{}' } }] })).toEqual([
      'providers.1.jwks.inline',
    ])
    expect(mistakes({ providers: [single, { ...other, issuer }] })).toEqual(['providers.1.issuer'])
    expect(mistakes({ ...single, location: { header: { name: 'a b' } } })).toEqual(['location.header.name'])
    expect(mistakes({ providers: [] })).toEqual(['providers'])
  })
})
