import type { JsonObject } from '../../../lib/json/json.ts'
import type { Provider } from '../providers/provider.ts'

export type PublicationRules = {
  provider: Provider
  audiences: readonly string[]
  hasClientId: boolean
}

/** URL of the published metadata, and its issuer; undefined retains the provider's issuer. */
export type PublishedAt = { url: string; issuer: string | undefined }

/** Adapts the provider's metadata for clients (decisions 7). */
export function publishedServerMetadata(
  upstream: JsonObject,
  { provider, audiences, hasClientId }: PublicationRules,
  { url, issuer }: PublishedAt,
): JsonObject {
  const metadata: JsonObject = { ...upstream, ...provider.adjustMetadata?.(upstream, audiences) }
  if (registersAtGateway(upstream, provider, hasClientId))
    metadata['registration_endpoint'] = `${url}/client-registration`
  if (provider.refusesResourceParameter) {
    metadata['authorization_endpoint'] = `${url}/authorize`
    metadata['token_endpoint'] = `${url}/token`
  }
  // Clients with metadata documents would bypass the configured client id.
  if (hasClientId) delete metadata['client_id_metadata_document_supported']
  if (issuer === undefined) return metadata
  // RFC 9207: the provider sends its own `iss`, which clients must not expect under another issuer.
  delete metadata['authorization_response_iss_parameter_supported']
  // Signed by another issuer (RFC 8414 section 2.1).
  delete metadata['signed_metadata']
  return { ...metadata, issuer }
}

function registersAtGateway(upstream: JsonObject, provider: Provider, hasClientId: boolean): boolean {
  if (hasClientId || provider.registersAtGateway === 'always') return true
  return provider.registersAtGateway === 'offered' && typeof upstream['registration_endpoint'] === 'string'
}
