import type { AuthenticationCheck } from '../../pipeline/authentication.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { bearerLocation, compileLocation } from '../../pipeline/credential-location.ts'
import { compileVerifier } from '../../pipeline/jwt/verifier.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { createAddresses } from './addresses.ts'
import { compileAuthenticate } from './authenticate.ts'
import type { McpAuthenticationConfig } from './config.ts'
import { compileDocuments } from './documents.ts'
import { providerOf } from './providers/index.ts'
import type { Provider } from './providers/provider.ts'
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
  context: CompileContext,
): McpAuthentication {
  const { issuer, audiences, clientId, resourceMetadata = {} } = config
  const provider = providerOf(config.provider)
  const addresses = createAddresses(resourceMetadata.resource, config.trustForwardedHeaders === true)
  const serverMetadata = keptServerMetadata(provider, issuer, context)
  const authorizationServers =
    config.authorizationServers ?? (config.provider === undefined ? 'provider' : 'gateway')
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
        ? createRelay({ serverMetadata, client: confidentialClient(config, context), send: context.send })
        : undefined,
    }),
    check: compileAuthenticate({
      mode: config.mode ?? 'strict',
      location:
        config.authorizationLocation === undefined
          ? bearerLocation
          : compileLocation(config.authorizationLocation),
      verifier: compileVerifier(
        { issuer, audiences, jwks: config.jwks, jwtValidationOptions: config.jwtValidationOptions },
        context,
        provider.keysUrl(issuer),
      ),
      addresses,
      scopes: resourceMetadata.scopesSupported ?? [],
    }),
  }
}

function keptServerMetadata(provider: Provider, issuer: string, context: CompileContext): ServerMetadata {
  const urls = provider.metadataUrls(issuer)
  return context.keep(`mcp authentication metadata: ${urls.join(' ')}`, () =>
    fetchedServerMetadata(urls, context),
  )
}

function confidentialClient(
  { clientId, clientSecret }: McpAuthenticationConfig,
  { readFile }: CompileContext,
) {
  if (clientId === undefined || clientSecret === undefined) return undefined
  const secret = typeof clientSecret === 'string' ? clientSecret : readFile(clientSecret.file).trim()
  return { id: clientId, secret }
}
