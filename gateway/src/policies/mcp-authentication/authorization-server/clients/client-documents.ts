import type { FetchedDocument } from '../../../../identity/jwt/fetch-document.ts'
import { plainAddress } from '../../../../lib/address/cidr.ts'
import { clientNetwork } from '../../../../lib/address/client-network.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import { parseJsonObject } from '../../../../lib/json/json.ts'
import { createLru } from '../../../../lib/lru.ts'
import { createGauge } from '../../../../lib/planes/gauge.ts'
import { createKeyedGauge } from '../../../../lib/planes/keyed-gauge.ts'
import { firstHeader, type Headers } from '../../../../net/http/headers.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { describeError } from '../../../../telemetry/log.ts'
import type { ClientLookup } from './client.ts'
import { displayName } from './display-name.ts'
import { readRedirectTarget } from './redirect-targets.ts'

/** Clients by metadata document: the client id is the URL of the document. */
export type ClientDocuments = {
  /** `address`: address of the browser that causes the fetch. */
  find(url: string, address: string): Promise<ClientLookup>
}

export type ClientDocumentsOptions = {
  /** Fetches a document of bounded size and time, from a public address, without following redirects. */
  fetch(url: string): Promise<FetchedDocument>
  /** Whether the configuration allows a redirect URI. */
  isAllowedRedirect(uri: string): boolean
}

const maxDocuments = 1_000
const maxFetches = 32
/** Limit per client network, so that slow documents of a few clients do not block others. */
const maxFetchesOfNetwork = 4
const defaultFreshMs = 10 * 60_000
const minFreshMs = 60_000
const maxFreshMs = 24 * 3_600_000
/** Cache lifetime of a failure. */
const failureMs = 10_000
const maxUrlLength = 512
const maxRedirectUris = 20

/** Whether a client id is the URL of a document: HTTPS, with a path, and in canonical form. */
export function isDocumentUrl(id: string): boolean {
  if (id.length > maxUrlLength || !/^https:\/\/[\x21-\x7e]+$/.test(id)) return false
  const url = URL.parse(id)
  if (url === null || url.username !== '' || url.password !== '') return false
  // The parser normalizes dot segments, default ports, backslashes and upper-case hosts.
  return url.href === id && url.pathname !== '/' && url.hash === '' && !id.includes('#')
}

/**
 * Client ID Metadata Documents (draft-ietf-oauth-client-id-metadata-document), cached by their cache headers.
 * Each data plane has a cache; the limits of fetches of a `name` apply to all of them.
 */
export function createClientDocuments(
  name: string,
  { fetch, isAllowedRedirect }: ClientDocumentsOptions,
  { clock, log, memory }: Pick<CompileContext, 'clock' | 'log' | 'memory'>,
): ClientDocuments {
  const cached = createLru<string, { found: ClientLookup; until: number }>(maxDocuments)
  const flights = new Map<string, Promise<ClientLookup>>()
  const total = createGauge(memory, name)
  const ofNetworks = createKeyedGauge(memory, name, maxFetches)
  const limits = { max: maxFetchesOfNetwork, total, maxTotal: maxFetches }

  async function load(url: string): Promise<ClientLookup> {
    try {
      const { status, headers, text } = await fetch(url)
      if (status !== 200) throw new GatewayError('upstream_invalid', `status ${status}`)
      const found = readDocument(text, { url, isAllowedRedirect })
      cached.set(url, { found, until: clock.monotonic() + freshMs(headers) })
      return found
    } catch (error) {
      log.info({ url, err: describeError(error) }, 'client metadata document refused')
      const found: ClientLookup = { kind: 'unknown', reason: 'its client metadata document is not usable' }
      cached.set(url, { found, until: clock.monotonic() + failureMs })
      return found
    }
  }

  return {
    async find(url, address) {
      const known = cached.get(url)
      if (known !== undefined && clock.monotonic() < known.until) return known.found
      const flight = flights.get(url)
      if (flight !== undefined) return flight
      const fetching = ofNetworks.open(clientNetwork(plainAddress(address)), limits)
      if (fetching.kind !== 'open') return { kind: 'unavailable' }
      const found = load(url).finally(() => {
        flights.delete(url)
        fetching.entry.close()
        total.subtract(1)
      })
      flights.set(url, found)
      return found
    },
  }
}

type Expected = { url: string; isAllowedRedirect(uri: string): boolean }

/** Validates a document, which is untrusted. */
function readDocument(text: string, { url, isAllowedRedirect }: Expected): ClientLookup {
  const document = parseJsonObject(text)
  if (document === undefined || document['client_id'] !== url)
    throw new GatewayError('upstream_invalid', 'the client_id of the document differs from its URL')
  const { token_endpoint_auth_method: method = 'none', redirect_uris: uris } = document
  if (method !== 'none' || document['client_secret'] !== undefined)
    throw new GatewayError('upstream_invalid', 'token_endpoint_auth_method must be "none"')
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > maxRedirectUris)
    throw new GatewayError('upstream_invalid', `redirect_uris must have 1 to ${maxRedirectUris} entries`)
  const redirectUris = uris.filter(
    (uri) => typeof uri === 'string' && readRedirectTarget(uri) !== undefined && isAllowedRedirect(uri),
  )
  return {
    kind: 'client',
    client: {
      id: url,
      name: displayName(document['client_name']),
      redirectUris: redirectUris.filter((uri) => typeof uri === 'string'),
      publisher: new URL(url).host,
    },
  }
}

function freshMs(headers: Headers): number {
  const control = firstHeader(headers, 'cache-control') ?? ''
  if (/\bno-(?:store|cache)\b/i.test(control)) return minFreshMs
  const maxAge = /\bmax-age="?(\d{1,10})\b/i.exec(control)?.[1]
  const stated = maxAge === undefined ? defaultFreshMs : Number(maxAge) * 1000
  return Math.min(maxFreshMs, Math.max(minFreshMs, stated))
}
