import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import { type Provider, withAudienceParameter } from './provider.ts'

/**
 * Okta: custom authorization servers have a path (`/oauth2/default`), the server of the organization has
 * none.
 */
export const okta: Provider = {
  keysUrl(issuer) {
    const base = withoutTrailingSlashes(issuer)
    return new URL(base).pathname === '/' ? `${base}/oauth2/v1/keys` : `${base}/v1/keys`
  },
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  registersAtGateway: 'offered',
  registrationUrl: (issuer) => `${new URL(issuer).origin}/oauth2/v1/clients`,
  adjustMetadata: withAudienceParameter,
}
