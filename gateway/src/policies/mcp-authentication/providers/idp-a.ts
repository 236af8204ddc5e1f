import { openIdConfigurationUrl, withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import type { Provider } from './provider.ts'

/**
 * Address, project and server of an agentic issuer. Text, not a parsed URL: the port must remain unchanged.
 */
const agenticIssuer = /^(.+)\/v1\/apps\/agentic\/([^/?#]+)\/([^/?#]+)\/?$/

/**
 * idpA, alias descope (specification, "Provider `idpA`"): agentic issuers belong to a project, which owns the
 * keys. Its registration requires a management key, except at the URL below, which belongs to one MCP server.
 */
export const idpA: Provider = {
  keysUrl(issuer) {
    const [, address, project] = agenticIssuer.exec(issuer) ?? []
    if (address === undefined) return `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`
    return `${address}/${project}/.well-known/jwks.json`
  },
  // The provider does not support the RFC 8414 form with the issuer's path.
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  registersAtGateway: 'offered',
  registrationUrl(issuer) {
    const [, address, project, server] = agenticIssuer.exec(issuer) ?? []
    return address && `${address}/v1/mgmt/mcp/client/${project}/${server}/register`
  },
}
