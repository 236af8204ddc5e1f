import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import type { Provider } from './provider.ts'

const version1Issuer = /^https:\/\/sts\.windows\.net\/([^/?#]+)\/?$/
const version2Issuer = /^(.+)\/v2\.0\/?$/

/**
 * Microsoft Entra ID: two token versions, no client registration, and `resource` with `scope` is an error.
 */
export const entra: Provider = {
  keysUrl(issuer) {
    const tenant = version1Issuer.exec(issuer)?.[1]
    if (tenant !== undefined) return `https://login.microsoftonline.com/${tenant}/discovery/keys`
    const base = version2Issuer.exec(issuer)?.[1] ?? withoutTrailingSlashes(issuer)
    return `${base}/discovery/v2.0/keys`
  },
  metadataUrls: (issuer) => [openIdConfigurationUrl(metadataIssuer(issuer))],
  metadataIssuer,
  registersAtGateway: 'always',
  registrationUrl: () => undefined,
  refusesResourceParameter: true,
}

/** The issuer of version 1 tokens has no version 2 metadata. */
function metadataIssuer(issuer: string): string {
  const tenant = version1Issuer.exec(issuer)?.[1]
  return tenant === undefined ? issuer : `https://login.microsoftonline.com/${tenant}/v2.0`
}
