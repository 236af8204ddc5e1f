import type { JsonObject } from '../../../lib/json/json.ts'

/**
 * Addresses of the front. Its issuer and its endpoints depend on the configuration only, never on a request.
 */
export type EndpointUrls = {
  issuer: string
  /** MCP endpoint, the only audience of its tokens (RFC 8707). */
  resource: string
  /** Origin of all endpoints. */
  origin: string
  /** Path of the issuer. */
  path: string
  endpoint(name: 'authorize' | 'consent' | 'callback' | 'token' | 'register'): string
}

export function endpointUrls(issuer: string, resource: string): EndpointUrls {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/+$/, '')
  return {
    issuer,
    resource,
    origin,
    path,
    // Below a prefix that belongs to the MCP endpoint at every gateway.
    endpoint: (name) => `${origin}/.well-known/oauth-authorization-server${path}/${name}`,
  }
}

export type MetadataOptions = {
  urls: EndpointUrls
  scopes: readonly string[]
  /** Whether dynamic client registration and client metadata documents are enabled. */
  registration: boolean
  clientDocuments: boolean
}

/** Metadata of the gateway as an authorization server (RFC 8414). */
export function authorizationServerMetadata(options: MetadataOptions): JsonObject {
  const { urls, scopes, registration, clientDocuments } = options
  return {
    issuer: urls.issuer,
    authorization_endpoint: urls.endpoint('authorize'),
    token_endpoint: urls.endpoint('token'),
    ...(registration ? { registration_endpoint: urls.endpoint('register') } : {}),
    ...(scopes.length === 0 ? {} : { scopes_supported: [...scopes] }),
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    // RFC 9207: every authorization response has `iss`.
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: clientDocuments,
    protected_resources: [urls.resource],
  }
}
