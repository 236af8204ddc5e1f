import type { JwksUri } from '../../identity/jwt/key-source.ts'
import { isLoopbackHost } from '../../lib/address/host-port.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ServerMetadata } from './discovery/server-metadata.ts'

export type DiscoveredJwksUriOptions = {
  issuer: string
  serverMetadata: ServerMetadata
  /** Address of the keys if the metadata names none. */
  fallbackUrl: string
  log: Log
}

/**
 * The `jwks_uri` of the provider's metadata (RFC 8414 section 2). The metadata must be that of `issuer` to the letter
 * (section 3.3), and the address HTTPS, unless it is on loopback or the issuer itself is not HTTPS. Metadata that fails
 * these checks, or has no `jwks_uri`, leads to `fallbackUrl`, which belongs to the issuer.
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
      if (found.kind === 'refused') log.warn({ issuer, reason: found.reason }, 'jwks_uri of metadata refused')
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

/** Whether an address out of the provider's metadata is HTTPS, on loopback, or no worse than the issuer itself. */
export function isSecureUrl(url: string, issuer: string): boolean {
  const parsed = URL.parse(url)
  if (parsed === null) return false
  if (parsed.protocol === 'https:') return true
  if (parsed.protocol !== 'http:') return false
  return isLoopbackHost(parsed.hostname.replace(/^\[|\]$/g, '')) || issuer.startsWith('http:')
}
