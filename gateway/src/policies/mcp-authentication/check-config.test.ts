import { describe, expect, it } from 'vitest'
import { keySetOf, signingPair } from '../../../test/fixtures/jwt.ts'
import { check } from '../../schema/check.ts'
import { checkMcpAuthentication } from './check-config.ts'
import { type McpAuthenticationConfig, mcpAuthenticationSchema } from './config.ts'

const good: McpAuthenticationConfig = {
  mode: 'strict',
  issuer: 'https://id.test/',
  audiences: ['a'],
  provider: { idpB: {} },
  clientId: 'a',
  allowedRedirectUris: ['http://localhost:*/cb'],
  resourceMetadata: { resource: 'https://gw.test/mcp', scopesSupported: ['openid'] },
  jwks: keySetOf(signingPair('k')),
  jwtValidationOptions: { requiredClaims: ['exp', 'sub'] },
}

function problems(changed: Partial<McpAuthenticationConfig>): string[] {
  const found: string[] = []
  checkMcpAuthentication({ ...good, ...changed }, (path) => found.push(path.join('.')))
  return found
}

function mistakes(value: unknown): string[] {
  const checked = check(mcpAuthenticationSchema, value)
  return checked.kind === 'valid'
    ? []
    : checked.mistakes.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

describe('the schema', () => {
  it('accepts a valid configuration, with additional fields of the resource metadata', () => {
    expect(mistakes(good)).toEqual([])
    expect(
      mistakes({ ...good, resourceMetadata: { resourceDocumentation: 'https://x.test', list: [1] } }),
    ).toEqual([])
    expect(mistakes({ ...good, jwks: { file: 'keys.json' } })).toEqual([])
    expect(mistakes({ issuer: 'https://id.test', audiences: ['a'] })).toEqual([])
  })

  it('requires issuer and audiences, one provider, and no other keys', () => {
    expect(mistakes({}).join()).toMatch(/issuer: is required.*audiences: is required/)
    expect(mistakes({ ...good, audiences: [] })).toEqual(['audiences: must not be empty'])
    expect(mistakes({ ...good, provider: { idpA: {}, idpB: {} } }).join()).toContain(
      'found both idpA and idpB',
    )
    expect(mistakes({ ...good, provider: { idpA: { x: 1 } } }).join()).toContain('unknown key `x`')
    expect(mistakes({ ...good, clientID: 'a' }).join()).toContain('did you mean `clientId`')
    expect(mistakes({ ...good, mode: 'lax' }).join()).toContain('strict, optional, permissive')
  })
})

describe('checking', () => {
  it('reports nothing for a valid configuration', () => {
    expect(problems({})).toEqual([])
    expect(problems({ jwks: 'https://id.test/keys' })).toEqual([])
  })

  it.each<[string, Partial<McpAuthenticationConfig>]>([
    ['jwks', { jwks: 'keys.json' }],
    ['jwks', { jwks: '{"keys":[]}' }],
    ['jwks.inline', { jwks: { inline: 'x' } }],
    ['issuer', { issuer: 'https://id.test/?x' }],
    ['resourceMetadata.scopesSupported.1', { resourceMetadata: { scopesSupported: ['a', 'b"c'] } }],
    ['resourceMetadata.resource', { resourceMetadata: { resource: 'https://gw.test/mcp#x' } }],
    ['allowedRedirectUris.0', { allowedRedirectUris: ['https://*'] }],
    ['clientSecret', { clientSecret: 's' }],
    ['authorizationLocation.header.name', { authorizationLocation: { header: { name: 'a b' } } }],
  ])('reports a mistake at %s', (path, changed) => {
    expect(problems(changed)).toEqual([path])
  })

  const front: Partial<McpAuthenticationConfig> = { authorizationServers: 'front' }

  it('accepts authorizationServers front with a client secret, and on loopback without TLS', () => {
    expect(problems({ ...front, clientSecret: 's' })).toEqual([])
    expect(problems({ ...front, front: { claims: 'idToken' } })).toEqual([])
    expect(problems({ ...front, resourceMetadata: { resource: 'http://localhost:3000/mcp' } })).toEqual([])
  })

  it.each<[string, Partial<McpAuthenticationConfig>]>([
    ['resourceMetadata.resource', { ...front, resourceMetadata: {} }],
    ['resourceMetadata.resource', { ...front, resourceMetadata: { resource: 'http://gw.test/mcp' } }],
    ['resourceMetadata.resource', { ...front, resourceMetadata: { resource: 'https://gw.test/mcp?x=1' } }],
    ['front.accessTokens', { ...front, front: { claims: 'idToken', accessTokens: 'provider' } }],
    ['audiences', { ...front, audiences: ['b'], front: { claims: 'idToken' } }],
    ['front.scopes.1', { ...front, front: { scopes: ['openid', 'a b'] } }],
    ['front.clientDocumentNetworks.0', { ...front, front: { clientDocumentNetworks: ['intranet'] } }],
    ['front', { front: {} }],
  ])('of authorizationServers front reports a mistake at %s', (path, changed) => {
    expect(problems(changed)).toEqual([path])
  })

  it('of authorizationServers front requires clientId', () => {
    const { clientId: _, allowedRedirectUris: __, ...without } = good
    const found: string[] = []
    checkMcpAuthentication({ ...without, authorizationServers: 'front' }, (path) =>
      found.push(path.join('.')),
    )
    expect(found).toEqual(['clientId'])
  })

  it('reports redirect URIs without clientId', () => {
    const { clientId: _, ...without } = good
    const found: string[] = []
    checkMcpAuthentication(without, (path) => found.push(path.join('.')))
    expect(found).toEqual(['allowedRedirectUris'])
  })
})
