import { checkLocation } from '../../pipeline/credential-location.ts'
import { parseKeySet } from '../../pipeline/jwt/key-set.ts'
import type { McpAuthenticationConfig } from './config.ts'
import { isRedirectUriPattern } from './redirect-uris.ts'

type Report = (path: (string | number)[], message: string) => void

/** RFC 6749 section 3.3; a scope stands in a quoted string of `www-authenticate`. */
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Reports what the schema of `mcpAuthentication` cannot say. */
export function checkMcpAuthentication(config: McpAuthenticationConfig, report: Report) {
  const { jwks, clientId, clientSecret, allowedRedirectUris, resourceMetadata = {}, provider } = config
  checkKeys(jwks, report)
  if (/[?#]/.test(config.issuer))
    report(['issuer'], 'an issuer has neither query nor fragment (RFC 8414 section 2)')
  resourceMetadata.scopesSupported?.forEach((scope, index) => {
    if (!scopeForm.test(scope))
      report(['resourceMetadata', 'scopesSupported', index], `not a scope: "${scope}"`)
  })
  if (resourceMetadata.resource !== undefined && /[#"\\]/.test(resourceMetadata.resource)) {
    report(['resourceMetadata', 'resource'], 'expected an address without a fragment (RFC 9728 section 1.2)')
  }
  allowedRedirectUris?.forEach((uri, index) => {
    if (isRedirectUriPattern(uri)) return
    report(
      ['allowedRedirectUris', index],
      `expected an absolute address, with * only as its port or at the end of its path, got "${uri}"`,
    )
  })
  if (allowedRedirectUris !== undefined && clientId === undefined) {
    report(['allowedRedirectUris'], 'needs clientId: without it registrations are answered by the provider')
  }
  if (clientSecret !== undefined && (clientId === undefined || provider?.entra === undefined)) {
    report(['clientSecret'], 'is used only with clientId and provider entra')
  }
  if (config.authorizationLocation !== undefined) {
    checkLocation(config.authorizationLocation, (path, message) =>
      report(['authorizationLocation', ...path], message),
    )
  }
}

function checkKeys(jwks: McpAuthenticationConfig['jwks'], report: Report) {
  if (typeof jwks === 'string') {
    if (jwks.trimStart().startsWith('{')) return checkKeySet(jwks, (message) => report(['jwks'], message))
    if (!isHttpUrl(jwks)) report(['jwks'], 'expected an address (https://...) or a key set as JSON ({...})')
    return
  }
  if (jwks?.inline !== undefined) checkKeySet(jwks.inline, (message) => report(['jwks', 'inline'], message))
}

function checkKeySet(text: string, report: (message: string) => void) {
  const set = parseKeySet(text)
  if (set === undefined) return report('not a JSON Web Key Set: expected {"keys": [...]}')
  if (set.size === 0)
    report('holds no key that can verify tokens: RSA from 2048 bits, EC P-256/384/521 or Ed25519')
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol
  return protocol === 'https:' || protocol === 'http:'
}
