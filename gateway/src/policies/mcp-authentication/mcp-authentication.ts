import type { CompileContext } from '../../pipeline/compile-context.ts'
import { bearerLocation, compileLocation } from '../../pipeline/credential-location.ts'
import { parseKeySet } from '../../pipeline/jwt/key-set.ts'
import { fetchedKeys, fixedKeys, type KeySource } from '../../pipeline/jwt/key-source.ts'
import { createTokenVerifier, type TokenVerifier } from '../../pipeline/jwt/token.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { createAddresses } from './addresses.ts'
import { compileAuthenticate } from './authenticate.ts'
import type { KeysConfig, McpAuthenticationConfig } from './config.ts'
import { compileDocuments } from './documents.ts'
import { providerOf } from './providers/index.ts'
import type { Provider } from './providers/provider.ts'
import { compileRegistration } from './registration.ts'
import { createRelay } from './relay.ts'
import { compileResourceMetadata } from './resource-metadata.ts'
import { fetchedServerMetadata, type ServerMetadata } from './server-metadata.ts'

/** The two steps of an MCP route that authenticate. */
export type McpAuthentication = {
  /** Answers discovery and registration. Comes first of all: these are for everyone, from every origin. */
  documents: Policy
  /** Checks the token of everything else. Writes `facts.jwt`. */
  authentication: Policy
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
    authentication: compileAuthenticate({
      mode: config.mode ?? 'strict',
      location:
        config.authorizationLocation === undefined
          ? bearerLocation
          : compileLocation(config.authorizationLocation),
      verifier: tokenVerifier(config, provider, context),
      addresses,
      scopes: resourceMetadata.scopesSupported ?? [],
    }),
  }
}

const defaultRequiredClaims = ['exp'] as const

function tokenVerifier(
  config: McpAuthenticationConfig,
  provider: Provider,
  context: CompileContext,
): TokenVerifier {
  const { issuer, audiences, jwks, jwtValidationOptions } = config
  const rules = {
    issuer,
    audiences,
    requiredClaims: jwtValidationOptions?.requiredClaims ?? defaultRequiredClaims,
  }
  const text = jwks === undefined ? undefined : givenKeys(jwks, context)
  const url = text === undefined ? keysUrl(jwks, issuer, provider) : undefined
  // Verified tokens belong to the rules and the keys they were verified by, not to the rest of the configuration.
  const name = `mcp authentication tokens: ${JSON.stringify([rules, url ?? text])}`
  return context.keep(name, () => createTokenVerifier(keySource(text, url, context), rules, context.clock))
}

function keySource(text: string | undefined, url: string | undefined, context: CompileContext): KeySource {
  if (url !== undefined)
    return context.keep(`mcp authentication keys: ${url}`, () => fetchedKeys(url, context))
  const set = parseKeySet(text ?? '')
  if (set === undefined) throw new Error('mcpAuthentication.jwks is not a JSON Web Key Set')
  if (set.size === 0) throw new Error('mcpAuthentication.jwks holds no key that can verify tokens')
  return fixedKeys(set)
}

/** The key set where the configuration holds it or names its file; undefined where it is at an address. */
function givenKeys(jwks: KeysConfig, { readFile }: CompileContext): string | undefined {
  if (typeof jwks === 'string') return jwks.trimStart().startsWith('{') ? jwks : undefined
  if (jwks.file !== undefined) return readFile(jwks.file)
  return jwks.inline
}

function keysUrl(jwks: KeysConfig | undefined, issuer: string, provider: Provider): string {
  if (typeof jwks === 'string') return jwks
  return jwks?.url ?? provider.keysUrl(issuer)
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
