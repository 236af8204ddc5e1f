import type { RequestFacts } from '../../../pipeline/exchange.ts'
import type { ResourceMetadataConfig } from '../config.ts'
import type { GatewayUrls } from './gateway-urls.ts'

/** The newest revision of the protocol with sessions that the gateway serves. */
const protocolVersion = '2025-11-25'

export type ResourceMetadataOptions = {
  config: ResourceMetadataConfig
  urls: GatewayUrls
  /** The issuer where clients go to the provider itself. */
  issuer: string | undefined
}

/**
 * The protected resource metadata (RFC 9728) at `path`, as JSON. Configured fields are in it under their snake_case
 * names and win over those of the gateway.
 */
export function compileResourceMetadata({
  config,
  urls,
  issuer,
}: ResourceMetadataOptions): (request: RequestFacts, path: string) => string {
  const configured = Object.fromEntries(Object.entries(config).map(([key, value]) => [snakeCase(key), value]))
  return (request, path) =>
    JSON.stringify({
      resource: urls.resource(request, path),
      authorization_servers: [issuer ?? urls.authorizationServer(request, path)],
      mcp_protocol_version: protocolVersion,
      resource_type: 'mcp-server',
      ...configured,
    })
}

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
