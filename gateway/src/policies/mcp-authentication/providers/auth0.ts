import {
  openIdConfigurationUrl,
  type Provider,
  serverMetadataUrl,
  withAudienceParameter,
  withoutTrailingSlashes,
} from './provider.ts'

/** Auth0: issuers end in a slash; without an audience its access tokens are opaque. Clients register there themselves. */
export const auth0: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`,
  metadataUrls: (issuer) => [serverMetadataUrl(issuer), openIdConfigurationUrl(issuer)],
  registersAtGateway: 'never',
  registrationUrl: () => undefined,
  adjustMetadata: withAudienceParameter,
}
