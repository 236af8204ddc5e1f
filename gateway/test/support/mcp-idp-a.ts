import type { ProviderShape } from './mcp-identity-provider.ts'

export const project = 'P2x'
export const server = 'SRV1'
export const managementKey = 'management-key'

/**
 * idpA as the specification describes it: an agentic issuer, keys at the project, described by OpenID Connect
 * discovery only, resource indicators (RFC 8707) that become `aud`, and a registration that wants a
 * management key, except at the address of one MCP server. `roles` and `tenants` are both in its tokens, in
 * the flat and the tenant-scoped format.
 */
export function idpAShape(claims: Record<string, unknown>): ProviderShape {
  const issuerPath = `/v1/apps/agentic/${project}/${server}`
  const registration = `/v1/mgmt/mcp/client/${project}/${server}/register`
  return {
    issuerPath,
    keysPath: `/${project}/.well-known/jwks.json`,
    metadataPath: `${issuerPath}/.well-known/openid-configuration`,
    authorizePath: '/oauth2/v1/apps/authorize',
    tokenPath: '/oauth2/v1/apps/token',
    metadata: (origin) => ({
      registration_endpoint: `${origin}/v1/mgmt/register`,
      grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
      client_id_metadata_document_supported: true,
    }),
    audience: ({ resource }) => resource ?? project,
    claims: () => claims,
    refuse: ({ resource }) => (resource === undefined ? 'invalid_target' : undefined),
    other({ path, authorization, body }) {
      if (path === '/v1/mgmt/register' && authorization !== `Bearer ${managementKey}`) {
        return { status: 401, body: { error: 'management key required' } }
      }
      if (path !== registration) return undefined
      return { status: 201, body: { ...JSON.parse(body), client_id: 'registered-at-idp-a' } }
    },
  }
}
