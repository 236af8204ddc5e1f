import { openIdConfigurationUrl, type Provider, withoutTrailingSlashes } from './provider.ts'

/** idpB, also known as authentik (specification, "Provider `idpB`"): issuers end in a slash, and nobody can register. */
export const idpB: Provider = {
  keysUrl: (issuer) => `${withoutTrailingSlashes(issuer)}/jwks/`,
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  // Its own `registration_endpoint` is null, so clients could not even ask.
  registersAtGateway: 'always',
  registrationUrl: () => undefined,
}
