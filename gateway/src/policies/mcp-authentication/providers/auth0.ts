import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import { type Provider, serverMetadataUrl, withAudienceParameter } from './provider.ts'

/**
 * Auth0: issuers end with a slash; access tokens without an audience are opaque. Clients register at the
 * provider.
 */
export const auth0: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`,
  metadataUrls: (issuer) => [serverMetadataUrl(issuer), openIdConfigurationUrl(issuer)],
  registersAtGateway: 'never',
  registrationUrl: () => undefined,
  adjustMetadata: withAudienceParameter,
}
