import type { AuthenticationCheck } from '../../identity/authentication.ts'
import { fixedJwksUri } from '../../identity/jwt/key-source.ts'
import type { TokenVerifier } from '../../identity/jwt/token-verifier.ts'
import { compileVerifier } from '../../identity/jwt/verifier-config.ts'
import { discoveredJwksUri } from '../../identity/provider/discovered-jwks-uri.ts'
import { createServerMetadata, type ServerMetadata } from '../../identity/provider/server-metadata.ts'
import { createGauge, type Gauge } from '../../lib/planes/gauge.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { bearerLocation, compileLocation } from '../../upstream/credentials/credential-location.ts'
import { sendUnder } from '../../upstream/egress.ts'
import { compileAccessTokenCheck } from './access-token-check.ts'
import {
  type AuthorizationServer,
  compileAuthorizationServer,
} from './authorization-server/authorization-server.ts'
import type { McpAuthenticationConfig } from './config.ts'
import { compileRegistration } from './discovery/client-registration.ts'
import { compileDiscovery } from './discovery/discovery.ts'
import { createGatewayUrls, gatewayIssuer } from './discovery/gateway-urls.ts'
import { createProviderProxy } from './discovery/provider-proxy.ts'
import { compileResourceMetadata } from './discovery/resource-metadata.ts'
import type { Provider } from './providers/provider.ts'
import { providerOf } from './providers/providers.ts'

/** Compiled `mcpAuthentication` of an MCP route. */
export type McpAuthentication = {
  /**
   * Serves discovery and registration. Runs before all other policies: these are public, for every origin.
   */
  discovery: Policy
  /** Checks the token of all other requests. Writes `facts.jwt`. */
  check: AuthenticationCheck
}

/**
 * Compiles `mcpAuthentication`. Keys, provider metadata and verified tokens survive reloads. Throws if a file
 * or an inline key set is unusable.
 */
export function compileMcpAuthentication(
  config: McpAuthenticationConfig,
  given: CompileContext,
): McpAuthentication {
  const egress = given.egress.of(config)
  const context: CompileContext = { ...given, send: sendUnder(egress, given.send) }
  const { issuer, audiences, clientId, resourceMetadata = {} } = config
  const provider = providerOf(config.provider)
  const urls = createGatewayUrls(resourceMetadata.resource, config.trustForwardedHeaders === true)
  const serverMetadata = sharedServerMetadata(provider, issuer, egress.key, context)
  const authorizationServers = config.authorizationServers ?? defaultAuthorizationServers(config, provider)
  const providerVerifier = compileProviderVerifier(config, { provider, serverMetadata }, given)
  const gatewayServer =
    authorizationServers === 'front'
      ? compileGatewayAuthorizationServer(
          config,
          { provider, serverMetadata, verifier: providerVerifier },
          given,
        )
      : undefined
  return {
    discovery: compileDiscovery({
      urls,
      resourceMetadata: compileResourceMetadata({
        config: resourceMetadata,
        urls,
        issuer: authorizationServers === 'provider' ? issuer : undefined,
      }),
      serverMetadata,
      presentation: { provider, audiences, hasClientId: clientId !== undefined },
      register: compileRegistration({
        clientId,
        allowedRedirectUris: config.allowedRedirectUris,
        registrationUrl: provider.registrationUrl(issuer),
        send: context.send,
        active: activeRequests('registration', issuer, context),
      }),
      proxy: provider.refusesResourceParameter
        ? createProviderProxy({
            serverMetadata,
            client: confidentialClient(config, context),
            // Its URLs are those of the provider's metadata.
            send: sendUnder(given.egress.document, given.send),
            active: activeRequests('proxy', issuer, context),
          })
        : undefined,
      authorizationServer: gatewayServer,
    }),
    check: compileAccessTokenCheck({
      mode: config.mode ?? 'strict',
      location:
        config.authorizationLocation === undefined
          ? bearerLocation
          : compileLocation(config.authorizationLocation),
      verifier: gatewayServer?.verifier ?? providerVerifier,
      urls,
      scopes: resourceMetadata.scopesSupported ?? [],
    }),
  }
}

type ProviderParts = { provider: Provider; serverMetadata: ServerMetadata }

/** Compiles the verifier of the provider's tokens. */
function compileProviderVerifier(
  config: McpAuthenticationConfig,
  { provider, serverMetadata }: ProviderParts,
  context: CompileContext,
): TokenVerifier {
  const { issuer, audiences, jwks, jwtValidationOptions } = config
  const keysUrl = provider.keysUrl(issuer)
  const address =
    config.provider === undefined
      ? discoveredJwksUri({ issuer, serverMetadata, fallbackUrl: keysUrl, log: context.log })
      : fixedJwksUri(keysUrl)
  return compileVerifier({ issuer, audiences, jwks, jwtValidationOptions, node: config }, context, address)
}

function compileGatewayAuthorizationServer(
  config: McpAuthenticationConfig,
  { provider, serverMetadata, verifier }: ProviderParts & { verifier: TokenVerifier },
  context: CompileContext,
): AuthorizationServer {
  const {
    issuer,
    audiences,
    clientId,
    clientSecret,
    resourceMetadata: { resource, ...metadata } = {},
  } = config
  if (clientId === undefined || resource === undefined)
    throw new Error('authorizationServers front requires clientId and resourceMetadata.resource')
  return compileAuthorizationServer(
    {
      issuer: gatewayIssuer(resource),
      resource,
      audiences,
      config: config.front ?? {},
      allowedRedirectUris: config.allowedRedirectUris,
      scopes: metadata.scopesSupported ?? [],
      provider: {
        issuer,
        metadataIssuer: provider.metadataIssuer?.(issuer) ?? issuer,
        serverMetadata,
        adjust: (found) => provider.adjustMetadata?.(found, audiences) ?? found,
        client: { id: clientId, secret: clientSecret && secretOf(clientSecret, context) },
        resource: provider.refusesResourceParameter ? undefined : resource,
        // Its URLs are those of the provider's metadata.
        send: sendUnder(context.egress.document, context.send),
        log: context.log,
        active: activeRequests('front', issuer, context),
      },
      verifier,
    },
    context,
  )
}

function defaultAuthorizationServers(
  config: McpAuthenticationConfig,
  { alwaysSendsIssuer }: Provider,
): 'gateway' | 'provider' {
  return config.provider === undefined || alwaysSendsIssuer === true ? 'provider' : 'gateway'
}

function sharedServerMetadata(
  provider: Provider,
  issuer: string,
  egressKey: string,
  context: CompileContext,
): ServerMetadata {
  const urls = provider.metadataUrls(issuer)
  const name = `mcp authentication metadata: ${[...urls, egressKey].join(' ')}`
  return context.retained(name, () => createServerMetadata(name, urls, context))
}

/** Requests to the provider of an issuer in progress, in all data planes. Their endpoints are public. */
function activeRequests(
  purpose: 'registration' | 'proxy' | 'front',
  issuer: string,
  { retained, memory }: CompileContext,
): Gauge {
  const name = `mcp authentication ${purpose} requests: ${issuer}`
  return retained(name, () => createGauge(memory, name))
}

function confidentialClient({ clientId, clientSecret }: McpAuthenticationConfig, context: CompileContext) {
  if (clientId === undefined || clientSecret === undefined) return undefined
  return { id: clientId, secret: secretOf(clientSecret, context) }
}

function secretOf(
  secret: NonNullable<McpAuthenticationConfig['clientSecret']>,
  { readFile }: CompileContext,
): string {
  return typeof secret === 'string' ? secret : readFile(secret.file).trim()
}
