import type { JsonObject } from '../../../lib/json/json.ts'

/** What differs from one identity provider to another: pure functions of the issuer, no IO. */
export type Provider = {
  /** Address of the keys that sign its tokens. */
  keysUrl(issuer: string): string
  /** Where it describes itself, in the order to try. */
  metadataUrls(issuer: string): readonly string[]
  /**
   * Whether clients register at the gateway: `always`, `offered` where the provider offers registration itself, or
   * `never`. With `clientId` they always do.
   */
  registersAtGateway: 'always' | 'offered' | 'never'
  /** Where the gateway passes registrations on to while `clientId` is not set; undefined where it refuses them. */
  registrationUrl(issuer: string): string | undefined
  /** Further changes to the description that clients get. */
  adjustMetadata?(metadata: JsonObject, audiences: readonly string[]): JsonObject
  /** The provider refuses the `resource` parameter of RFC 8707, so authorization and token requests pass the gateway, which takes it off. */
  refusesResourceParameter?: true
  /**
   * The provider always sends its `iss` with codes (RFC 9207). Under the issuer of the gateway, strict clients refuse such
   * codes, so `authorizationServers` defaults to `provider`.
   */
  alwaysSendsIssuer?: true
  /** The `issuer` of its metadata, where it differs from that of its tokens. */
  metadataIssuer?(issuer: string): string
}

export function withoutTrailingSlashes(issuer: string): string {
  let end = issuer.length
  while (end > 0 && issuer[end - 1] === '/') end--
  return issuer.slice(0, end)
}

/** OpenID Connect Discovery 1.0 section 4: appended to the issuer. */
export function openIdConfigurationUrl(issuer: string): string {
  return `${withoutTrailingSlashes(issuer)}/.well-known/openid-configuration`
}

/** RFC 8414 section 3.1: inserted between host and path of the issuer. */
export function serverMetadataUrl(issuer: string): string {
  const { origin, pathname } = new URL(issuer)
  return `${origin}/.well-known/oauth-authorization-server${pathname === '/' ? '' : withoutTrailingSlashes(pathname)}`
}

/** The description with an `audience` on its authorization endpoint, for providers that know no `resource` parameter. */
export function withAudienceParameter(metadata: JsonObject, audiences: readonly string[]): JsonObject {
  const { authorization_endpoint: endpoint } = metadata
  const [audience] = audiences
  const url = typeof endpoint === 'string' ? URL.parse(endpoint) : null
  if (url === null || audience === undefined || url.searchParams.has('audience')) return metadata
  url.searchParams.set('audience', audience)
  return { ...metadata, authorization_endpoint: url.href }
}
