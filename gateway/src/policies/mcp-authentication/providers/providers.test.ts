import { describe, expect, it } from 'vitest'
import { auth0 } from './auth0.ts'
import { entra } from './entra.ts'
import { generic } from './generic.ts'
import { idpA } from './idp-a.ts'
import { idpB } from './idp-b.ts'
import { keycloak } from './keycloak.ts'
import { okta } from './okta.ts'
import { providerOf } from './providers.ts'

describe('idpA', () => {
  const issuer = 'https://api.idp-a.test:8443/v1/apps/agentic/P123/S456'

  it('derives the key URL from the project, with the port of the issuer', () => {
    expect(idpA.keysUrl(issuer)).toBe('https://api.idp-a.test:8443/P123/.well-known/jwks.json')
    expect(idpA.keysUrl(`${issuer}/`)).toBe('https://api.idp-a.test:8443/P123/.well-known/jwks.json')
    expect(idpA.keysUrl('https://api.idp-a.test/P123')).toBe(
      'https://api.idp-a.test/P123/.well-known/jwks.json',
    )
  })

  it('supports OpenID Connect discovery', () => {
    expect(idpA.metadataUrls(issuer)).toEqual([`${issuer}/.well-known/openid-configuration`])
  })

  it('derives the registration URL from the server', () => {
    expect(idpA.registrationUrl(issuer)).toBe(
      'https://api.idp-a.test:8443/v1/mgmt/mcp/client/P123/S456/register',
    )
    expect(idpA.registrationUrl('https://api.idp-a.test/P123')).toBeUndefined()
    expect(idpA.registersAtGateway).toBe('offered')
  })
})

describe('idpB', () => {
  it.each(['https://idp-b.test/application/o/app/', 'https://idp-b.test/application/o/app'])(
    'has its keys and its description beside the issuer %s',
    (issuer) => {
      expect(idpB.keysUrl(issuer)).toBe('https://idp-b.test/application/o/app/jwks/')
      expect(idpB.metadataUrls(issuer)).toEqual([
        'https://idp-b.test/application/o/app/.well-known/openid-configuration',
      ])
    },
  )

  it('has no registration URL', () => {
    expect(idpB.registrationUrl('https://idp-b.test/')).toBeUndefined()
    expect(idpB.registersAtGateway).toBe('always')
  })
})

describe('keycloak', () => {
  it('derives all URLs from the realm', () => {
    const issuer = 'https://kc.test/realms/main'
    expect(keycloak.keysUrl(issuer)).toBe('https://kc.test/realms/main/protocol/openid-connect/certs')
    expect(keycloak.registrationUrl(issuer)).toBe(
      'https://kc.test/realms/main/clients-registrations/openid-connect',
    )
  })
})

describe('auth0', () => {
  it('has both metadata URLs, and an audience parameter', () => {
    expect(auth0.metadataUrls('https://t.auth0.test/')).toEqual([
      'https://t.auth0.test/.well-known/oauth-authorization-server',
      'https://t.auth0.test/.well-known/openid-configuration',
    ])
    const endpoint = { authorization_endpoint: 'https://t.auth0.test/authorize?x=1' }
    expect(auth0.adjustMetadata?.(endpoint, ['https://gw/mcp', 'b'])).toEqual({
      authorization_endpoint: 'https://t.auth0.test/authorize?x=1&audience=https%3A%2F%2Fgw%2Fmcp',
    })
    expect(auth0.adjustMetadata?.({}, ['a'])).toEqual({})
  })
})

describe('okta', () => {
  it('derives the key URL from the kind of issuer', () => {
    expect(okta.keysUrl('https://o.okta.test/oauth2/default')).toBe(
      'https://o.okta.test/oauth2/default/v1/keys',
    )
    expect(okta.keysUrl('https://o.okta.test')).toBe('https://o.okta.test/oauth2/v1/keys')
    expect(okta.registrationUrl('https://o.okta.test/oauth2/default')).toBe(
      'https://o.okta.test/oauth2/v1/clients',
    )
  })
})

describe('entra', () => {
  it('derives key URLs for both token versions', () => {
    expect(entra.keysUrl('https://login.microsoftonline.com/T/v2.0')).toBe(
      'https://login.microsoftonline.com/T/discovery/v2.0/keys',
    )
    expect(entra.keysUrl('https://sts.windows.net/T/')).toBe(
      'https://login.microsoftonline.com/T/discovery/keys',
    )
    expect(entra.metadataUrls('https://sts.windows.net/T/')).toEqual([
      'https://login.microsoftonline.com/T/v2.0/.well-known/openid-configuration',
    ])
  })
})

describe('a generic provider', () => {
  it('derives URLs by the standards', () => {
    expect(generic.metadataUrls('https://id.test:8443/realm/')).toEqual([
      'https://id.test:8443/.well-known/oauth-authorization-server/realm',
      'https://id.test:8443/realm/.well-known/openid-configuration',
    ])
    expect(generic.keysUrl('https://id.test:8443/realm/')).toBe(
      'https://id.test:8443/realm/.well-known/jwks.json',
    )
  })
})

describe('the name in the configuration', () => {
  it('selects the provider, also by its alias', () => {
    expect(providerOf({ idpA: {} })).toBe(idpA)
    expect(providerOf({ descope: {} })).toBe(idpA)
    expect(providerOf({ idpB: {} })).toBe(idpB)
    expect(providerOf({ authentik: {} })).toBe(idpB)
    expect(providerOf({ entra: {} })).toBe(entra)
    expect(providerOf(undefined)).toBe(generic)
  })
})
