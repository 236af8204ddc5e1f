import { firstHeader } from '../../../net/http/headers.ts'
import type { RequestFacts } from '../../../pipeline/exchange.ts'

/** Public URLs of the gateway. */
export type GatewayUrls = {
  /** Scheme, host and port, for example `https://gateway.example.com`. */
  origin(request: RequestFacts): string
  /** URL of the MCP endpoint at `path`: the configured resource, or derived from the request. */
  resource(request: RequestFacts, path: string): string
  /** Issuer of the gateway as an authorization server. */
  authorizationServer(request: RequestFacts, path: string): string
  /** URL of the protected resource metadata (RFC 9728 section 3.1), safe inside a quoted string. */
  resourceMetadata(request: RequestFacts): string
}

const resourceMetadataPath = '/.well-known/oauth-protected-resource'

/** Path of the issuer if the resource has no path. */
const defaultPath = '/mcp'
const hostForm = /^[A-Za-z0-9._-]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/

/**
 * Creates the URLs from the configured resource, or per request: a forged `host` affects only its own
 * response.
 */
export function createGatewayUrls(resource: string | undefined, trustForwardedHeaders: boolean): GatewayUrls {
  if (resource !== undefined) return configuredUrls(resource)
  const origin = (request: RequestFacts) => requestOrigin(request, trustForwardedHeaders)
  const at = (request: RequestFacts, path: string) => origin(request) + escaped(path)
  return {
    origin,
    resource: at,
    authorizationServer: (request, path) => at(request, path === '' ? defaultPath : path),
    resourceMetadata(request) {
      const { path } = request
      return at(request, resourceMetadataPath + (path === '/' ? '' : path))
    },
  }
}

function configuredUrls(resource: string): GatewayUrls {
  const { origin, pathname } = new URL(resource)
  const path = pathname.replace(/\/+$/, '')
  const authorizationServer = gatewayIssuer(resource)
  const resourceMetadata = escaped(origin + resourceMetadataPath + path)
  return {
    origin: () => origin,
    resource: () => resource,
    authorizationServer: () => authorizationServer,
    resourceMetadata: () => resourceMetadata,
  }
}

/** Issuer of the gateway for a configured resource. */
export function gatewayIssuer(resource: string): string {
  const { origin, pathname } = new URL(resource)
  // The root document retains the provider's issuer, so a resource without a path requires another issuer.
  return /^\/*$/.test(pathname) ? origin + defaultPath : resource
}

function requestOrigin({ headers, scheme, host }: RequestFacts, trustForwardedHeaders: boolean): string {
  const forwarded = trustForwardedHeaders ? headers : {}
  const proto = firstOf(firstHeader(forwarded, 'x-forwarded-proto'))
  const forwardedHost = firstOf(firstHeader(forwarded, 'x-forwarded-host'))
  const chosen = forwardedHost !== undefined && hostForm.test(forwardedHost) ? forwardedHost : host
  return `${proto === 'https' || proto === 'http' ? proto : scheme}://${hostForm.test(chosen) ? chosen : 'localhost'}`
}

/** First value of a list: that of the outermost proxy. */
function firstOf(value: string | undefined): string | undefined {
  return value?.split(',', 1)[0]?.trim().toLowerCase()
}

/** Escapes quotes and non-ASCII characters, which request paths may contain, for URLs and headers. */
function escaped(text: string): string {
  return text.replace(/[^\x21\x23-\x5b\x5d\x5f\x61-\x7a\x7e]/gu, (character) =>
    character.isWellFormed() ? encodeURIComponent(character) : '%EF%BF%BD',
  )
}
