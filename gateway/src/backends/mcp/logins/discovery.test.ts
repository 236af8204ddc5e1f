import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { DiscoveryError, discoverServer, isResourceOf, parseChallenge } from './discovery.ts'

const target = 'https://tools.test/v1/mcp'
const server: JsonObject = {
  issuer: 'https://auth.test/realm',
  authorization_endpoint: 'https://auth.test/authorize',
  token_endpoint: 'https://auth.test/token',
  code_challenge_methods_supported: ['S256'],
}
const resource: JsonObject = { resource: target, authorization_servers: ['https://auth.test/realm'] }
const wellKnown = 'https://tools.test/.well-known/oauth-protected-resource'
const metadataUrl = 'https://auth.test/.well-known/oauth-authorization-server/realm'

/** Discovers with these documents; other addresses are 404. */
async function discover(documents: Record<string, JsonObject>, challenge?: string, issuer?: string) {
  const asked: string[] = []
  const found = await discoverServer({
    target,
    issuer,
    async send({ origin, path, method }): Promise<Reply> {
      if (method === 'POST')
        return { status: 401, headers: challenge ? { 'www-authenticate': challenge } : {}, body: undefined }
      asked.push(origin + path)
      const document = documents[origin + path]
      return document === undefined
        ? { status: 404, headers: {}, body: undefined }
        : { status: 200, headers: {}, body: Buffer.from(JSON.stringify(document)) }
    },
  })
  return { found, asked }
}

describe('the authorization server of a target', () => {
  it('is found by the well-known metadata of its path', async () => {
    const { found, asked } = await discover({ [`${wellKnown}/v1/mcp`]: resource, [metadataUrl]: server })
    expect(found).toMatchObject({
      ...{ issuer: server['issuer'], resource: target, tokenEndpoint: 'https://auth.test/token', scopes: [] },
    })
    expect(asked).toEqual([`${wellKnown}/v1/mcp`, metadataUrl])
  })

  it('is found by the challenge, with its scopes', async () => {
    const url = 'https://tools.test/about'
    const challenge = `Bearer realm="x", resource_metadata="${url}", scope="read write"`
    const { found, asked } = await discover({ [url]: resource, [metadataUrl]: server }, challenge)
    expect([found.scopes, asked[0]]).toEqual([['read', 'write'], url])
  })

  it('is that of the configuration, or of the origin without metadata', async () => {
    const openId = 'https://tools.test/.well-known/openid-configuration'
    const own = { ...server, issuer: 'https://tools.test' }
    expect((await discover({ [openId]: own })).found.issuer).toBe('https://tools.test')
    const configured = await discover({ [metadataUrl]: server }, undefined, 'https://auth.test/realm')
    expect(configured.found.issuer).toBe('https://auth.test/realm')
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['other issuer', resource, { ...server, issuer: 'https://evil.test' }],
    ['plain HTTP endpoint', resource, { ...server, token_endpoint: 'http://auth.test/token' }],
    ['server without PKCE', resource, { ...server, code_challenge_methods_supported: ['plain'] }],
    ['other resource', { ...resource, resource: 'https://evil.test/v1/mcp' }, server],
    ['invalid server', { ...resource, authorization_servers: ['file:///etc/passwd'] }, server],
  ])('is refused for metadata with an %s', async (_, about, metadata) => {
    const documents = { [`${wellKnown}/v1/mcp`]: about, [metadataUrl]: metadata }
    await expect(discover(documents)).rejects.toThrow(DiscoveryError)
  })

  it.each([
    ['long resource', { ...resource, resource: `https://evil.test/${'x'.repeat(9_000)}` }],
    ['long issuer', { ...resource, authorization_servers: [`https://auth.test/${'x'.repeat(900)}`] }],
    [
      'issuer over the limit',
      { ...resource, authorization_servers: [`https://a.test/${'x'.repeat(9_000)}`] },
    ],
  ])('is refused with a short error for a %s', async (_, about) => {
    const failure = await discover({ [`${wellKnown}/v1/mcp`]: about }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(DiscoveryError)
    expect(String(failure).length).toBeLessThan(250)
  })

  it('is refused for a challenge with a plain HTTP address', async () => {
    const challenge = 'Bearer resource_metadata="http://tools.test/about"'
    await expect(discover({ [metadataUrl]: server }, challenge)).rejects.toThrow(DiscoveryError)
  })
})

it.each([
  ['https://tools.test/v1/mcp', true],
  ['https://tools.test/v1/', true],
  ['https://tools.test', true],
  ['https://tools.test/v1/mc', false],
  ['https://tools.test:444/v1/mcp', false],
  ['https://tools.test/v1/mcp?x', false],
  [undefined, false],
])('the resource %s covers the target: %s', (identifier, covers) => {
  expect(isResourceOf(identifier, target)).toBe(covers)
})

it.each([
  ['Bearer', {}],
  ['Bearer scope=read', { scopes: ['read'] }],
  ['Bearer x_resource_metadata="a"', {}],
  ['Bearer RESOURCE_METADATA="https://a.test/b", error="x"', { metadataUrl: 'https://a.test/b' }],
])('reads the challenge %s', (text, expected) => {
  expect(parseChallenge(text)).toEqual({ metadataUrl: undefined, scopes: undefined, ...expected })
})
