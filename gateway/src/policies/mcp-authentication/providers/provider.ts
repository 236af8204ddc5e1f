import { withoutTrailingSlashes } from '../../../identity/provider/server-metadata.ts'
import type { JsonObject } from '../../../lib/json/json.ts'

/** Properties of a kind of identity provider: pure functions of the issuer, no IO. */
export type Provider = {
  /** URL of its key set. */
  keysUrl(issuer: string): string
  /** URLs of its metadata, in the order of attempts. */
  metadataUrls(issuer: string): readonly string[]
  /**
   * Whether clients register at the gateway: `always`, `offered` if the provider offers registration, or
   * `never`. With `clientId` they always do.
   */
  registersAtGateway: 'always' | 'offered' | 'never'
  /** Registration endpoint for forwarded registrations without `clientId`; undefined if they are refused. */
  registrationUrl(issuer: string): string | undefined
  /** Changes to the metadata that clients receive. */
  adjustMetadata?(metadata: JsonObject, audiences: readonly string[]): JsonObject
  /**
   * The provider refuses the `resource` parameter (RFC 8707), so the gateway proxies authorization and token
   * requests.
   */
  refusesResourceParameter?: true
  /**
   * The provider always sends its `iss` with codes (RFC 9207). Strict clients refuse such codes under the
   * issuer of the gateway, so `authorizationServers` defaults to `provider`.
   */
  alwaysSendsIssuer?: true
  /** `issuer` of its metadata, if different from the issuer of its tokens. */
  metadataIssuer?(issuer: string): string
}

/** RFC 8414 section 3.1: between host and path of the issuer. */
export function serverMetadataUrl(issuer: string): string {
  const { origin, pathname } = new URL(issuer)
  return `${origin}/.well-known/oauth-authorization-server${pathname === '/' ? '' : withoutTrailingSlashes(pathname)}`
}

/**
 * Adds `audience` to the authorization endpoint, for providers without support of the `resource` parameter.
 */
export function withAudienceParameter(metadata: JsonObject, audiences: readonly string[]): JsonObject {
  const { authorization_endpoint: endpoint } = metadata
  const [audience] = audiences
  const url = typeof endpoint === 'string' ? URL.parse(endpoint) : null
  if (url === null || audience === undefined || url.searchParams.has('audience')) return metadata
  url.searchParams.set('audience', audience)
  return { ...metadata, authorization_endpoint: url.href }
}
