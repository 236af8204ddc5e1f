import { fetchDocument } from '../../../identity/jwt/fetch-document.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { isHttpUrl } from '../../../schema/dsl.ts'
import type { Provider } from '../providers/provider.ts'

/** Returns the metadata of the provider (RFC 8414); undefined until the first successful fetch. */
export type ServerMetadata = () => Promise<JsonObject | undefined>

const maxBytes = 256 * 1024
const timeoutMs = 10_000
const freshMs = 60_000
const retryMs = 5_000

/**
 * Creates a cache of the provider's metadata, from the first of `urls` that succeeds. Fetched on use, fresh
 * for a minute, and served stale while the provider fails, with a retry every few seconds.
 */
export function createServerMetadata(
  urls: readonly string[],
  { send, clock, log }: CompileContext,
): ServerMetadata {
  let current: JsonObject | undefined
  let dueAt = Number.NEGATIVE_INFINITY
  let flight: Promise<void> | undefined

  async function refresh(): Promise<void> {
    try {
      current = await firstOf(urls, async (url) => {
        const { status, text } = await fetchDocument(send, { url, maxBytes, timeoutMs })
        if (status !== 200) throw new GatewayError('upstream_invalid', `status ${status}`)
        return readServerMetadata(text)
      })
      dueAt = clock.monotonic() + freshMs
    } catch (error) {
      dueAt = clock.monotonic() + retryMs
      log.warn(
        { url: urls[0], err: error },
        current
          ? 'provider metadata refresh failed, stale metadata served'
          : 'provider metadata fetch failed',
      )
    }
  }

  return async () => {
    if (clock.monotonic() < dueAt) return current
    flight ??= refresh().finally(() => {
      flight = undefined
    })
    await flight
    return current
  }
}

/** Result of the first successful attempt; throws the error of the last. */
async function firstOf<T>(urls: readonly string[], attempt: (url: string) => Promise<T>): Promise<T> {
  let failure: unknown = new GatewayError('internal', 'no metadata URL')
  for (const url of urls) {
    try {
      return await attempt(url)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/**
 * Validates the metadata of the provider. Clients pass these URLs to browsers or shells, so members with
 * invalid URLs are removed.
 */
function readServerMetadata(text: string): JsonObject {
  const document: unknown = parsed(text)
  if (!isJsonObject(document) || typeof document['issuer'] !== 'string') {
    throw new GatewayError('upstream_invalid', 'response is not authorization server metadata')
  }
  return Object.fromEntries(
    Object.entries(document).filter(([key, value]) => {
      const isAddress = key.endsWith('_endpoint') || key === 'jwks_uri'
      return !isAddress || typeof value !== 'string' || isSafeHttpUrl(value)
    }),
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isSafeHttpUrl(text: string): boolean {
  return isHttpUrl(text) && !/[\s"'<>`\\$(){}]/.test(text)
}

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
