import type { TokenVerifier } from '../../../identity/jwt/token-verifier.ts'
import { createReplayCache, type ReplayCache } from '../../../identity/tokens/replay.ts'
import { createRotationResults, isCompleteReply } from '../../../identity/tokens/rotation-results.ts'
import { createTokenFamilies, type TokenFamilies } from '../../../identity/tokens/token-families.ts'
import { readSessionKey } from '../../../lib/session-key.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { jsonReply } from '../json-reply.ts'
import { compileRedirectUriPatterns } from '../redirect-uri-patterns.ts'
import { createBrowserCookie } from './browser-cookie.ts'
import { createClientDocuments } from './clients/client-documents.ts'
import { type Clients, createClients } from './clients/clients.ts'
import { compileClientDocumentFetch } from './clients/fetch-client-document.ts'
import type { AuthorizationServerConfig } from './config.ts'
import { compileAuthorize } from './endpoints/authorize.ts'
import { compileCallback } from './endpoints/callback.ts'
import { compileConsent } from './endpoints/consent.ts'
import {
  browserEndpoint,
  type Endpoint,
  type EndpointName,
  type EndpointRequest,
  handleRequest,
  notFound,
  scriptEndpoint,
} from './endpoints/endpoint.ts'
import { compileRegister } from './endpoints/register.ts'
import { compileToken } from './endpoints/token.ts'
import { authorizationServerMetadata, type EndpointUrls, endpointUrls } from './metadata.ts'
import { compileProviderClaims } from './provider/claims.ts'
import { createProviderClient, type ProviderClientOptions } from './provider/client.ts'
import { createRequestRateLimit, type RequestRateLimit } from './request-rate-limit.ts'
import { type AccessTokens, createAccessTokens } from './tokens/access-tokens.ts'
import { createSealedValues, type SealedValues } from './tokens/sealed-values.ts'

export type AuthorizationServerOptions = {
  /** Issuer of the gateway, and URL of the MCP endpoint. */
  issuer: string
  resource: string
  /** Audiences of the provider's tokens. */
  audiences: readonly string[]
  config: AuthorizationServerConfig
  allowedRedirectUris: readonly string[] | undefined
  scopes: readonly string[]
  provider: Omit<ProviderClientOptions, 'redirectUri' | 'scopes'>
  /** Verifies the tokens of the provider that contain the claims. */
  verifier: TokenVerifier
}

/** Gateway as an authorization server. */
export type AuthorizationServer = {
  handle(exchange: Exchange, request: EndpointRequest): Promise<Reply>
  /** Verifies the access tokens of clients. */
  verifier: TokenVerifier
}

/** State that survives reloads, shared by the data planes: keys, used values, rates. */
type State = {
  sealed: SealedValues
  rate: RequestRateLimit
  codes: ReplayCache
  logins: ReplayCache
  tokenFamilies: TokenFamilies<Reply>
  accessTokens: AccessTokens
}

const maxCodes = 10_000
const maxFamilies = 20_000

/** Compiles `authorizationServers: front`. Throws if the session key is malformed. */
export function compileAuthorizationServer(
  options: AuthorizationServerOptions,
  context: CompileContext,
): AuthorizationServer {
  const { issuer, resource, config, verifier } = options
  const urls = endpointUrls(issuer, resource)
  const state = sharedState(options, context)
  const endpoints = compileEndpoints(options, { urls, state }, context)
  return {
    handle: (exchange, request) =>
      handleRequest(endpoints[request.name], { exchange, request, path: urls.path, rate: state.rate }),
    verifier: config.accessTokens === 'provider' ? verifier : state.accessTokens,
  }
}

type Parts = { urls: EndpointUrls; state: State }

function compileEndpoints(
  options: AuthorizationServerOptions,
  { urls, state }: Parts,
  context: CompileContext,
): Record<EndpointName, Endpoint> {
  const { resource, config, scopes, verifier } = options
  const { sealed, codes, logins, tokenFamilies, accessTokens } = state
  const now = () => context.clock.now()
  const { clients, isAllowedRedirect } = compileClients(options, sealed, context)
  const cookie = createBrowserCookie(urls.origin)
  const source = config.claims ?? 'accessToken'
  const provider = createProviderClient({
    ...options.provider,
    redirectUri: urls.endpoint('callback'),
    scopes: [...(source === 'idToken' ? ['openid'] : []), ...(config.scopes ?? [])],
  })
  const registration = config.registration !== false
  const clientDocuments = config.clientDocuments !== false
  const metadata = JSON.stringify(
    authorizationServerMetadata({ urls, scopes, registration, clientDocuments }),
  )
  const token = compileToken({
    ...{ resource, clients, sealed, provider, accessTokens, codes, tokenFamilies, now },
    readClaims: compileProviderClaims({ source, verifier, now }),
    passesTokens: config.accessTokens === 'provider',
  })
  return {
    server: scriptEndpoint('GET', async () => jsonReply(200, metadata)),
    authorize: browserEndpoint(
      'GET',
      compileAuthorize({
        ...{ urls, clients, cookie, sealed, scopes, now },
        trustsRedirects: options.allowedRedirectUris !== undefined,
      }),
    ),
    consent: browserEndpoint('POST', compileConsent({ urls, cookie, sealed, provider, now })),
    callback: browserEndpoint('GET', compileCallback({ urls, cookie, sealed, provider, logins, now })),
    token: scriptEndpoint('POST', token),
    register: scriptEndpoint(
      'POST',
      registration ? compileRegister({ sealed, isAllowedRedirect, now }) : async () => notFound,
    ),
  }
}

function compileClients(
  { config, allowedRedirectUris }: AuthorizationServerOptions,
  sealed: SealedValues,
  context: CompileContext,
): { clients: Clients; isAllowedRedirect(uri: string): boolean } {
  const isAllowedRedirect =
    allowedRedirectUris === undefined ? () => true : compileRedirectUriPatterns(allowedRedirectUris)
  const networks = config.clientDocumentNetworks ?? []
  const name = `mcp front client documents: ${JSON.stringify([networks, allowedRedirectUris])}`
  const create = () =>
    createClientDocuments(
      name,
      { fetch: compileClientDocumentFetch(networks, context), isAllowedRedirect },
      context,
    )
  const documents = config.clientDocuments === false ? undefined : context.retained(name, create)
  return { clients: createClients({ sealed, documents, isAllowedRedirect }), isAllowedRedirect }
}

function sharedState(
  { issuer, audiences, provider, config }: AuthorizationServerOptions,
  context: CompileContext,
): State {
  const { sessionKey, clock, log, memory } = context
  const key = sessionKey === undefined ? undefined : readSessionKey(sessionKey)
  if (sessionKey !== undefined && key === undefined)
    throw new Error('the session key must be 64 hexadecimal digits (32 bytes)')
  // Tokens become invalid when these settings change, as those of the provider would.
  const settings = JSON.stringify([provider.issuer, provider.client.id, audiences, config.claims])
  const name = `mcp front: ${JSON.stringify([issuer, settings, key !== undefined])}`
  return context.retained(name, () => {
    if (key === undefined && memory.plane === 0)
      log.warn({ issuer }, 'config.session.key not set: a restart ends all logins and registrations')
    const sealed = createSealedValues(key ?? Buffer.from(context.processKey), { issuer, settings }, clock)
    const tokenFamilies = createFamilies(name, context)
    return {
      sealed,
      tokenFamilies,
      rate: createRequestRateLimit(`${name}/rate`, memory, clock),
      codes: createReplayCache(memory, { name: `${name}/codes`, capacity: maxCodes }, clock),
      logins: createReplayCache(memory, { name: `${name}/logins`, capacity: maxCodes }, clock),
      accessTokens: createAccessTokens(sealed, tokenFamilies, clock),
    }
  })
}

function createFamilies(name: string, context: CompileContext): TokenFamilies<Reply> {
  const { memory, peers, clock } = context
  const results = context.retained('mcp front: rotation results', () =>
    createRotationResults(peers, 'refresh token rotations'),
  )
  const options = { name: `${name}/families`, capacity: maxFamilies, results, isResult: isCompleteReply }
  return createTokenFamilies<Reply>(options, memory, clock)
}
