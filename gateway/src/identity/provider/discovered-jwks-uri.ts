import { isLoopbackHost } from '../../lib/address/host-port.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import type { Log } from '../../telemetry/log.ts'
import type { JwksUri } from '../jwt/key-source.ts'
import type { ServerMetadata } from './server-metadata.ts'

export type DiscoveredJwksUriOptions = {
  issuer: string
  serverMetadata: ServerMetadata
  /** URL of the key set if the metadata has no `jwks_uri`. */
  fallbackUrl: string
  log: Log
}

/**
 * Resolves the `jwks_uri` of the provider's metadata (RFC 8414 section 2). The `issuer` of the metadata must
 * be identical (section 3.3), and the URL must be HTTPS, unless it is on loopback or the issuer is not HTTPS.
 * Metadata that fails these checks, or has no `jwks_uri`, resolves to `fallbackUrl`, which belongs to the
 * issuer.
 */
export function discoveredJwksUri(options: DiscoveredJwksUriOptions): JwksUri {
  const { issuer, serverMetadata, fallbackUrl, log } = options
  return {
    name: `jwks_uri of ${issuer}`,
    isDiscovered: true,
    async resolve() {
      const metadata = await serverMetadata()
      if (metadata === undefined) return fallbackUrl
      const found = jwksUriIn(metadata, issuer)
      if (found.kind === 'usable') return found.url
      if (found.kind === 'refused')
        log.warn({ issuer, reason: found.reason }, 'provider metadata jwks_uri refused')
      return fallbackUrl
    },
  }
}

type FoundJwksUri = { kind: 'usable'; url: string } | { kind: 'refused'; reason: string } | { kind: 'none' }

function jwksUriIn(metadata: JsonObject, issuer: string): FoundJwksUri {
  if (metadata['issuer'] !== issuer) return { kind: 'refused', reason: 'metadata has another issuer' }
  const url = metadata['jwks_uri']
  if (typeof url !== 'string') return { kind: 'none' }
  return isSecureUrl(url, issuer)
    ? { kind: 'usable', url }
    : { kind: 'refused', reason: 'address is not HTTPS' }
}

/** Whether a URL of the provider's metadata is HTTPS, on loopback, or plain HTTP like the issuer. */
export function isSecureUrl(url: string, issuer: string): boolean {
  const parsed = URL.parse(url)
  if (parsed === null) return false
  if (parsed.protocol === 'https:') return true
  if (parsed.protocol !== 'http:') return false
  return isLoopbackHost(parsed.hostname.replace(/^\[|\]$/g, '')) || issuer.startsWith('http:')
}
