import type { ProviderShape } from './mcp-identity-provider.ts'

export const clientId = 'tollgate-public-client'

/**
 * idpB as the specification describes it: an issuer with a slash at its end, keys at `jwks/`, a null
 * registration endpoint, no resource indicators, `aud` equal to the client id, `groups` only with the scope
 * `profile`, and grants only where the client lists them.
 */
export function idpBShape(
  groups: readonly string[],
  grants: readonly string[] = ['authorization_code', 'refresh_token', 'client_credentials'],
): ProviderShape {
  const issuerPath = '/application/o/tollgate/'
  return {
    issuerPath,
    keysPath: `${issuerPath}jwks/`,
    metadataPath: `${issuerPath}.well-known/openid-configuration`,
    authorizePath: '/application/o/authorize/',
    tokenPath: '/application/o/token/',
    metadata: () => ({ registration_endpoint: null, grant_types_supported: grants }),
    audience: (request) => request.clientId,
    claims: ({ scopes }) => (scopes.includes('profile') ? { groups: [...groups] } : {}),
    refuse(request) {
      if (request.clientId !== clientId) return 'invalid_client'
      if (!grants.includes(request.grantType)) return 'invalid_grant'
      const isService = request.grantType === 'client_credentials'
      return isService && !request.form.has('password') && !request.form.has('client_secret')
        ? 'invalid_client'
        : undefined
    },
  }
}
