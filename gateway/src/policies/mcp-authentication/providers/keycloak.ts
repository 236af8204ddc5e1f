import { openIdConfigurationUrl, type Provider, withoutTrailingSlashes } from './provider.ts'

/** Keycloak: issuers are realms. Its registration sends no CORS headers, so web clients need the gateway for it. */
export const keycloak: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/protocol/openid-connect/certs`,
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  registersAtGateway: 'offered',
  registrationUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/clients-registrations/openid-connect`,
}
