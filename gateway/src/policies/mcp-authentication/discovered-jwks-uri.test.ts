import { describe, expect, it } from 'vitest'
import { audience, keySetOf, signingPair, signToken, upstreamContext } from '../../../test/fixtures/jwt.ts'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { compileMcpAuthentication } from './mcp-authentication.ts'

const provider = 'https://id.test/realm'
const inserted = 'https://id.test/.well-known/oauth-authorization-server/realm'
const appended = 'https://id.test/realm/.well-known/openid-configuration'
const fallback = 'https://id.test/realm/.well-known/jwks.json'
const named = 'https://keys.test/from-metadata'
const pair = signingPair('k')
const other = signingPair('k')

function setUp(documents: Record<string, object>, issuer = provider) {
  const { context, upstream } = upstreamContext()
  context.clock.advance(1_700_000_000_000)
  for (const [url, document] of Object.entries(documents)) {
    upstream.answers.set(url, { text: JSON.stringify(document) })
  }
  const { check } = compileMcpAuthentication({ issuer, audiences: [audience] }, context)
  return {
    context,
    upstream,
    async isAccepted(by = pair) {
      const token = await signToken(by, context.clock.now(), { iss: issuer })
      const outcome = await check(fixtureExchange({ headers: { authorization: `Bearer ${token}` } }))
      return outcome?.kind === 'accepted'
    },
  }
}

const keysAt = (url: string, by = pair) => ({ [url]: JSON.parse(keySetOf(by)) })

describe('jwks_uri of the metadata', () => {
  it.each([inserted, appended])('is read at %s if no provider is configured', async (url) => {
    const metadata = { [url]: { issuer: provider, jwks_uri: named } }
    const { isAccepted, upstream } = setUp({ ...metadata, ...keysAt(named) })
    expect(await isAccepted()).toBe(true)
    expect(upstream.count(fallback)).toBe(0)
  })

  it.each([
    ['has another issuer', { issuer: `${provider}/`, jwks_uri: named }],
    ['is not HTTPS', { issuer: provider, jwks_uri: 'http://keys.test/from-metadata' }],
    ['is not an address', { issuer: provider, jwks_uri: 'file:///etc/keys' }],
    ['is absent', { issuer: provider }],
  ])('is not used if it %s; the address below the issuer is', async (_, metadata) => {
    const attacker = keysAt('http://keys.test/from-metadata', other)
    const { isAccepted } = setUp({
      [inserted]: metadata,
      ...keysAt(named, other),
      ...attacker,
      ...keysAt(fallback),
    })
    expect(await isAccepted()).toBe(true)
    expect(await isAccepted(other)).toBe(false)
  })

  it.each([
    ['on loopback', 'https://id.test', 'http://127.0.0.1:9000/keys'],
    ['of an issuer without HTTPS', 'http://id.internal', 'http://keys.internal/keys'],
  ])('may be plain HTTP %s', async (_, issuer, url) => {
    const metadata = { [`${issuer}/.well-known/oauth-authorization-server`]: { issuer, jwks_uri: url } }
    expect(await setUp({ ...metadata, ...keysAt(url) }, issuer).isAccepted()).toBe(true)
  })

  it('remains in use while the metadata fetch fails', async () => {
    const { isAccepted, upstream, context } = setUp({
      [inserted]: { issuer: provider, jwks_uri: named },
      ...keysAt(named),
    })
    expect(await isAccepted()).toBe(true)
    upstream.answers.delete(inserted)
    context.clock.advance(3_600_000)
    expect(await isAccepted()).toBe(true)
    expect(upstream.count(named)).toBe(2)
    expect(upstream.count(fallback)).toBe(0)
  })
})
