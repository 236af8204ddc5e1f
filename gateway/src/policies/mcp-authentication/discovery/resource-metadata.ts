import type { RequestFacts } from '../../../pipeline/exchange.ts'
import type { ResourceMetadataConfig } from '../config.ts'
import type { GatewayUrls } from './gateway-urls.ts'

/** Latest supported protocol revision with sessions. */
const protocolVersion = '2025-11-25'

export type ResourceMetadataOptions = {
  config: ResourceMetadataConfig
  urls: GatewayUrls
  /** Issuer of the provider if clients call it directly. */
  issuer: string | undefined
}

/**
 * Compiles the protected resource metadata (RFC 9728) at `path`, as JSON. Configured fields override those of
 * the gateway; their names become snake_case.
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
