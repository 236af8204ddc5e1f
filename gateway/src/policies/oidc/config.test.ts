import { describe, expect, it } from 'vitest'
import { checkOidc, type OidcConfig } from './config.ts'

const base: OidcConfig = { issuer: 'https://id.test', clientId: 'gateway' }
const explicit = {
  authorizationEndpoint: 'https://id.test/authorize',
  tokenEndpoint: 'https://id.test/token',
  jwks: 'https://id.test/keys',
}

function mistakes(config: Partial<OidcConfig>): string[] {
  const found: string[] = []
  checkOidc({ ...base, ...config }, (path, message) => found.push(`${path.join('.')} ${message}`))
  return found
}

describe('the check of oidc', () => {
  it.each<[string, Partial<OidcConfig>]>([
    ['the least', {}],
    [
      'explicit endpoints',
      { ...explicit, tokenEndpointAuth: 'clientSecretPost', userinfoEndpoint: 'https://id.test/u' },
    ],
    ['a document by address', { discovery: 'https://id.test/metadata' }],
    ['a document', { discovery: { inline: '{"issuer":"https://id.test"}' } }],
    ['paths', { redirectURI: '/cb', logoutPath: '/logout', postLogoutRedirectURI: '/bye' }],
    ['secrets', { session: { secrets: ['x'.repeat(32), { file: '/run/secret' }] } }],
  ])('accepts %s', (_, config) => expect(mistakes(config)).toEqual([]))

  it.each<[string, Partial<OidcConfig>]>([
    ['jwks is required', { ...explicit, jwks: undefined }],
    [
      'tokenEndpoint is required',
      { authorizationEndpoint: explicit.authorizationEndpoint, jwks: explicit.jwks },
    ],
    ['discovery must be absent', { ...explicit, discovery: 'https://id.test/metadata' }],
    ['tokenEndpointAuth requires', { tokenEndpointAuth: 'clientSecretPost' }],
    ['endSessionEndpoint requires', { endSessionEndpoint: 'https://id.test/end' }],
    ['discovery must be an address', { discovery: 'metadata' }],
    ['redirectURI must have a path', { redirectURI: 'https://gw.test/' }],
    ['logoutPath must be a path', { logoutPath: 'https://gw.test/logout' }],
    ['postLogoutRedirectURI must be', { postLogoutRedirectURI: '//evil.test' }],
    ['scopes.1 must be a scope', { scopes: ['email', 'a b'] }],
    ['session.secrets.0 must have at least 32', { session: { secrets: ['short'] } }],
  ])('reports: %s', (message, config) => {
    expect(mistakes(config)).toEqual([expect.stringMatching(new RegExp(`^${message.replace('.', '\\.')}`))])
  })
})
