import { openIdConfigurationUrl, type Provider, withoutTrailingSlashes } from './provider.ts'

/** Address of the provider, project and server of an agentic issuer. Text, not a parsed URL: its port must stay as it is. */
const agenticIssuer = /^(.+)\/v1\/apps\/agentic\/([^/?#]+)\/([^/?#]+)\/?$/

/**
 * idpA, also known as descope (specification, "Provider `idpA`"): agentic issuers belong to a project, whose keys sign.
 * Its registration wants a management key, except at the address below, which belongs to one MCP server.
 */
export const idpA: Provider = {
  keysUrl(issuer) {
    const [, address, project] = agenticIssuer.exec(issuer) ?? []
    if (address === undefined) return `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`
    return `${address}/${project}/.well-known/jwks.json`
  },
  // The RFC 8414 form with the issuer's path is not supported there.
  metadataUrls: (issuer) => [openIdConfigurationUrl(issuer)],
  registersAtGateway: 'offered',
  registrationUrl(issuer) {
    const [, address, project, server] = agenticIssuer.exec(issuer) ?? []
    return address && `${address}/v1/mgmt/mcp/client/${project}/${server}/register`
  },
}
