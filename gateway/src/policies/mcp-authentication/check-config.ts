import { checkJwks } from '../../identity/jwt/verifier-config.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkLocation } from '../../upstream/credentials/credential-location.ts'
import { checkAuthorizationServer } from './authorization-server/config.ts'
import type { McpAuthenticationConfig } from './config.ts'
import { isRedirectUriPattern } from './redirect-uri-patterns.ts'

/** RFC 6749 section 3.3; `www-authenticate` contains scopes in a quoted string. */
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Reports issues of `mcpAuthentication` beyond its schema. */
export function checkMcpAuthentication(config: McpAuthenticationConfig, report: ReportIssue) {
  const { jwks, clientId, clientSecret, allowedRedirectUris, resourceMetadata = {}, provider } = config
  if (jwks !== undefined) checkJwks(jwks, (path, message) => report(['jwks', ...path], message))
  if (/[?#]/.test(config.issuer))
    report(['issuer'], 'must not have a query or a fragment (RFC 8414 section 2)')
  resourceMetadata.scopesSupported?.forEach((scope, index) => {
    if (!scopeForm.test(scope))
      report(['resourceMetadata', 'scopesSupported', index], `must be a scope, got "${scope}"`)
  })
  if (resourceMetadata.resource !== undefined && /[#"\\]/.test(resourceMetadata.resource)) {
    report(['resourceMetadata', 'resource'], 'must be an address without a fragment (RFC 9728 section 1.2)')
  }
  allowedRedirectUris?.forEach((uri, index) => {
    if (isRedirectUriPattern(uri)) return
    report(
      ['allowedRedirectUris', index],
      `must be an absolute address, with * only as its port or at the end of its path, got "${uri}"`,
    )
  })
  if (allowedRedirectUris !== undefined && clientId === undefined) {
    report(['allowedRedirectUris'], 'requires clientId: without it the provider registers clients')
  }
  const isFront = config.authorizationServers === 'front'
  if (clientSecret !== undefined && !isFront && (clientId === undefined || provider?.entra === undefined)) {
    report(['clientSecret'], 'is only valid with clientId, and provider entra or authorizationServers front')
  }
  if (isFront) {
    const { front, audiences } = config
    checkAuthorizationServer({ front, clientId, audiences, resource: resourceMetadata.resource }, report)
  } else if (config.front !== undefined) {
    report(['front'], 'is only valid with authorizationServers front')
  }
  if (config.authorizationLocation !== undefined) {
    checkLocation(config.authorizationLocation, (path, message) =>
      report(['authorizationLocation', ...path], message),
    )
  }
}
