import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import { type Provider, serverMetadataUrl } from './provider.ts'

/** Provider that conforms to the standards. Clients register at the provider. */
export const generic: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`,
  metadataUrls: (issuer) => [serverMetadataUrl(issuer), openIdConfigurationUrl(issuer)],
  registersAtGateway: 'never',
  registrationUrl: () => undefined,
}
