import {
  openIdConfigurationUrl,
  type Provider,
  serverMetadataUrl,
  withoutTrailingSlashes,
} from './provider.ts'

/** Any provider that follows the standards; clients register there themselves. */
export const generic: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`,
  metadataUrls: (issuer) => [serverMetadataUrl(issuer), openIdConfigurationUrl(issuer)],
  registersAtGateway: 'never',
  registrationUrl: () => undefined,
}
