import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import type { Provider } from './provider.ts'

/**
 * idpB, alias authentik (specification, "Provider `idpB`"): issuers end with a slash; no client registration.
 */
export const idpB: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/jwks/`,
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  // The provider's `registration_endpoint` is null.
  registersAtGateway: 'always',
  registrationUrl: () => undefined,
}
