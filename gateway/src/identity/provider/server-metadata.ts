import { GatewayError } from '../../lib/gateway-error.ts'
import { type JsonObject, parseJsonObject } from '../../lib/json/json.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { isHttpUrl } from '../../schema/dsl.ts'
import { fetchDocument } from '../jwt/fetch-document.ts'
import { createSharedDocument, type DocumentFetch } from '../jwt/shared-document.ts'

/** Returns the metadata of the provider (RFC 8414); undefined until the first successful fetch. */
export type ServerMetadata = () => Promise<JsonObject | undefined>

const maxBytes = 256 * 1024
const timeoutMs = 10_000
const freshMs = 60_000
const retryMs = 5_000

/**
 * Creates a cache of the provider's metadata, from the first of `urls` that succeeds. Fetched on use, fresh
 * for a minute, and served stale while the provider fails, with a retry every few seconds. The data planes of
 * the process share the cache of a `name`.
 */
export function createServerMetadata(
  name: string,
  urls: readonly string[],
  { send, clock, log, memory, metrics: { conditions } }: CompileContext,
): ServerMetadata {
  // A byte of malformed UTF-8 becomes three.
  const document = createSharedDocument(name, 3 * maxBytes, memory)
  let parsed: { version: number; metadata: JsonObject | undefined } = { version: 0, metadata: undefined }

  function latestMetadata(): JsonObject | undefined {
    const { text, version } = document.latest()
    if (version !== parsed.version) parsed = { version, metadata: readServerMetadata(text ?? '') }
    return parsed.metadata
  }

  async function fetchMetadata(): Promise<DocumentFetch> {
    try {
      const text = await firstOf(urls, async (url) => {
        const response = await fetchDocument(send, { url, maxBytes, timeoutMs })
        if (response.status !== 200) throw new GatewayError('upstream_invalid', `status ${response.status}`)
        if (readServerMetadata(response.text) === undefined)
          throw new GatewayError('upstream_invalid', 'response is not authorization server metadata')
        return response.text
      })
      return { kind: 'fetched', text, dueAt: clock.monotonic() + freshMs }
    } catch (error) {
      const isPresent = () => document.latest().failures > 0
      const [subject = name] = urls
      conditions.report({ kind: 'identity', subject, message: messageOf(error), isPresent })
      log.warn(
        { url: urls[0], err: error },
        document.latest().text !== undefined
          ? 'provider metadata refresh failed, stale metadata served'
          : 'provider metadata fetch failed',
      )
      return { kind: 'failed', retryAt: clock.monotonic() + retryMs }
    }
  }

  return async () => {
    const state = document.latest()
    const dueAt = state.failures > 0 ? state.retryAt : state.dueAt
    if (clock.monotonic() >= dueAt) await document.update({ since: state, fetch: fetchMetadata })
    return latestMetadata()
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
 * Validates the metadata of the provider; undefined if the text is not metadata. Clients pass its URLs to
 * browsers or shells, so members with invalid URLs are removed.
 */
function readServerMetadata(text: string): JsonObject | undefined {
  const document = parseJsonObject(text)
  if (document === undefined || typeof document['issuer'] !== 'string') return undefined
  return Object.fromEntries(
    Object.entries(document).filter(([key, value]) => {
      const isAddress = key.endsWith('_endpoint') || key === 'jwks_uri'
      return !isAddress || typeof value !== 'string' || isSafeHttpUrl(value)
    }),
  )
}

function isSafeHttpUrl(text: string): boolean {
  return isHttpUrl(text) && !/[\s"'<>`\\$(){}]/.test(text)
}

/** OpenID Connect Discovery 1.0 section 4: suffix of the issuer. */
export function openIdConfigurationUrl(issuer: string): string {
  return `${withoutTrailingSlashes(issuer)}/.well-known/openid-configuration`
}

export function withoutTrailingSlashes(issuer: string): string {
  let end = issuer.length
  while (end > 0 && issuer[end - 1] === '/') end--
  return issuer.slice(0, end)
}
