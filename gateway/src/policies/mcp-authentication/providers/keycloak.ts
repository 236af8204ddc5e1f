import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import type { Provider } from './provider.ts'

/**
 * Keycloak: issuers are realms. Every authorization response has `iss`, so clients use the realm directly by
 * default.
 */
export const keycloak: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/protocol/openid-connect/certs`,
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  registersAtGateway: 'offered',
  registrationUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/clients-registrations/openid-connect`,
  alwaysSendsIssuer: true,
}
