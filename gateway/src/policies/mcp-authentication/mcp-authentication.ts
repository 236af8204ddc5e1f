import type { AuthenticationCheck } from '../../identity/authentication.ts'
import { bearerLocation, compileLocation } from '../../identity/credential-location.ts'
import { fixedAddress } from '../../identity/jwt/key-source.ts'
import type { TokenVerifier } from '../../identity/jwt/token.ts'
import { compileVerifier } from '../../identity/jwt/verifier.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { sendUnder } from '../../upstream/egress.ts'
import { createAddresses, ownIssuer } from './addresses.ts'
import { compileAuthenticate } from './authenticate.ts'
import type { McpAuthenticationConfig } from './config.ts'
import { discoveredKeys } from './discovered-keys.ts'
import { compileDocuments } from './documents.ts'
import { compileFront, type Front } from './front/front.ts'
import type { Provider } from './providers/provider.ts'
import { providerOf } from './providers/providers.ts'
import { compileRegistration } from './registration.ts'
import { createRelay } from './relay.ts'
import { compileResourceMetadata } from './resource-metadata.ts'
import { fetchedServerMetadata, type ServerMetadata } from './server-metadata.ts'

/** The two parts of an MCP route that authenticate. */
export type McpAuthentication = {
  /** Answers discovery and registration. Comes first of all: these are for everyone, from every origin. */
  documents: Policy
  /** Checks the token of everything else. Writes `facts.jwt`. */
  check: AuthenticationCheck
}

/**
 * Compiles `mcpAuthentication`. Keys, provider metadata and verified tokens outlive reloads. Throws when a file or an
 * inline key set is of no use.
 */
export function compileMcpAuthentication(
  config: McpAuthenticationConfig,
  given: CompileContext,
): McpAuthentication {
  const egress = given.egress.of(config)
  const context: CompileContext = { ...given, send: sendUnder(egress, given.send) }
  const { issuer, audiences, clientId, resourceMetadata = {} } = config
  const provider = providerOf(config.provider)
  const addresses = createAddresses(resourceMetadata.resource, config.trustForwardedHeaders === true)
  const serverMetadata = keptServerMetadata(provider, issuer, egress.key, context)
  const authorizationServers = config.authorizationServers ?? defaultAuthorizationServers(config, provider)
  const ofProvider = compileProviderVerifier(config, { provider, serverMetadata }, given)
  const front =
    authorizationServers === 'front'
      ? compileFrontOf(config, { provider, serverMetadata, verifier: ofProvider }, given)
      : undefined
  return {
    documents: compileDocuments({
      addresses,
      resourceMetadata: compileResourceMetadata({
        config: resourceMetadata,
        addresses,
        issuer: authorizationServers === 'provider' ? issuer : undefined,
      }),
      serverMetadata,
      presentation: { provider, audiences, hasClientId: clientId !== undefined },
      register: compileRegistration({
        clientId,
        allowedRedirectUris: config.allowedRedirectUris,
        registrationUrl: provider.registrationUrl(issuer),
        send: context.send,
      }),
      relay: provider.refusesResourceParameter
        ? createRelay({
            serverMetadata,
            client: confidentialClient(config, context),
            // Its addresses are those of the provider's metadata.
            send: sendUnder(given.egress.document, given.send),
          })
        : undefined,
      front,
    }),
    check: compileAuthenticate({
      mode: config.mode ?? 'strict',
      location:
        config.authorizationLocation === undefined
          ? bearerLocation
          : compileLocation(config.authorizationLocation),
      verifier: front?.verifier ?? ofProvider,
      addresses,
      scopes: resourceMetadata.scopesSupported ?? [],
    }),
  }
}

type OfProvider = { provider: Provider; serverMetadata: ServerMetadata }

/** The verifier of the provider's own tokens. */
function compileProviderVerifier(
  config: McpAuthenticationConfig,
  { provider, serverMetadata }: OfProvider,
  context: CompileContext,
): TokenVerifier {
  const { issuer, audiences, jwks, jwtValidationOptions } = config
  const keysUrl = provider.keysUrl(issuer)
  const address =
    config.provider === undefined
      ? discoveredKeys({ issuer, serverMetadata, fallbackUrl: keysUrl, log: context.log })
      : fixedAddress(keysUrl)
  return compileVerifier({ issuer, audiences, jwks, jwtValidationOptions, node: config }, context, address)
}

function compileFrontOf(
  config: McpAuthenticationConfig,
  { provider, serverMetadata, verifier }: OfProvider & { verifier: TokenVerifier },
  context: CompileContext,
): Front {
  const {
    issuer,
    audiences,
    clientId,
    clientSecret,
    resourceMetadata: { resource, ...metadata } = {},
  } = config
  if (clientId === undefined || resource === undefined)
    throw new Error('authorizationServers front needs clientId and resourceMetadata.resource')
  return compileFront(
    {
      issuer: ownIssuer(resource),
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
        // Its addresses are those of the provider's metadata.
        send: sendUnder(context.egress.document, context.send),
        log: context.log,
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

function keptServerMetadata(
  provider: Provider,
  issuer: string,
  egressKey: string,
  context: CompileContext,
): ServerMetadata {
  const urls = provider.metadataUrls(issuer)
  return context.retained(`mcp authentication metadata: ${[...urls, egressKey].join(' ')}`, () =>
    fetchedServerMetadata(urls, context),
  )
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
