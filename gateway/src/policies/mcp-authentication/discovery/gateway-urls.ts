import { firstHeader } from '../../../net/http/headers.ts'
import type { RequestFacts } from '../../../pipeline/exchange.ts'

/** The gateway's own urls as its clients know them. */
export type GatewayUrls = {
  /** Scheme, host and port, for example `https://gateway.example.com`. */
  origin(request: RequestFacts): string
  /** The MCP endpoint at `path`: the configured resource, or what the request says. */
  resource(request: RequestFacts, path: string): string
  /** The authorization server that the gateway appears as. */
  authorizationServer(request: RequestFacts, path: string): string
  /** Where the metadata of the resource is (RFC 9728 section 3.1), safe inside a quoted string. */
  resourceMetadata(request: RequestFacts): string
}

const resourceMetadataPath = '/.well-known/oauth-protected-resource'

/** The path of the MCP endpoint of a gateway whose resource has none. */
const defaultPath = '/mcp'
const hostForm = /^[A-Za-z0-9._-]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/

/** Of a configured resource everything is known beforehand; else the request tells, which only itself would be misled by. */
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

/** The issuer that the gateway appears as for a configured resource. */
export function gatewayIssuer(resource: string): string {
  const { origin, pathname } = new URL(resource)
  // The root document keeps the provider's issuer, so a resource without a path needs another to be an issuer by.
  return /^\/*$/.test(pathname) ? origin + defaultPath : resource
}

function requestOrigin({ headers, scheme, host }: RequestFacts, trustForwardedHeaders: boolean): string {
  const forwarded = trustForwardedHeaders ? headers : {}
  const proto = firstOf(firstHeader(forwarded, 'x-forwarded-proto'))
  const forwardedHost = firstOf(firstHeader(forwarded, 'x-forwarded-host'))
  const chosen = forwardedHost !== undefined && hostForm.test(forwardedHost) ? forwardedHost : host
  return `${proto === 'https' || proto === 'http' ? proto : scheme}://${hostForm.test(chosen) ? chosen : 'localhost'}`
}

/** Of several proxies the outermost wrote the first value. */
function firstOf(value: string | undefined): string | undefined {
  return value?.split(',', 1)[0]?.trim().toLowerCase()
}

/** Paths of requests may hold quotes and characters beyond ASCII, which neither a URL nor a header should. */
function escaped(text: string): string {
  return text.replace(/[^\x21\x23-\x5b\x5d\x5f\x61-\x7a\x7e]/gu, (character) =>
    character.isWellFormed() ? encodeURIComponent(character) : '%EF%BF%BD',
  )
}
