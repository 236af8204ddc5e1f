import type { ProviderShape } from './mcp-identity-provider.ts'

const realm = '/realms/main'

/**
 * Keycloak: issuers are realms with registration of their own, and metadata in both forms. Use it with
 * `sendsIss`, which it always does.
 */
export function keycloakShape(claims: Record<string, unknown>): ProviderShape {
  const endpoints = `${realm}/protocol/openid-connect`
  const registration = `${realm}/clients-registrations/openid-connect`
  return {
    issuerPath: realm,
    keysPath: `${endpoints}/certs`,
    metadataPath: `${realm}/.well-known/openid-configuration`,
    insertedMetadataPath: `/.well-known/oauth-authorization-server${realm}`,
    authorizePath: `${endpoints}/auth`,
    tokenPath: `${endpoints}/token`,
    metadata: (origin) => ({ registration_endpoint: origin + registration }),
    audience: ({ resource }) => resource ?? 'account',
    claims: () => claims,
    refuse: () => undefined,
    other({ path, body }) {
      if (path !== registration) return undefined
      return { status: 201, body: { ...JSON.parse(body), client_id: 'registered-at-keycloak' } }
    },
  }
}
