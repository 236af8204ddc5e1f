import { randomBytes } from 'node:crypto'
import type { TokenVerifier } from '../../../identity/jwt/token.ts'
import { readSessionKey } from '../../../lib/session-key.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { jsonReply } from '../json-reply.ts'
import { compileRedirectUris } from '../redirect-uris.ts'
import { createBrowserCookie } from './browser-cookie.ts'
import { createClientDocuments } from './clients/client-documents.ts'
import { type Clients, createClients } from './clients/clients.ts'
import { compileClientDocumentFetch } from './clients/fetch-client-document.ts'
import { compileAuthorize } from './endpoints/authorize.ts'
import { compileCallback } from './endpoints/callback.ts'
import { compileConsent } from './endpoints/consent.ts'
import {
  answerEndpoint,
  browserEndpoint,
  type FrontEndpoint,
  type FrontEndpointName,
  type FrontRequest,
  notFound,
  scriptEndpoint,
} from './endpoints/endpoint.ts'
import { compileRegister } from './endpoints/register.ts'
import { compileToken } from './endpoints/token.ts'
import type { FrontConfig } from './front-config.ts'
import { type FrontAddresses, frontAddresses, frontMetadata } from './metadata.ts'
import { compileProviderClaims } from './provider/provider-claims.ts'
import { createProviderClient, type ProviderClientOptions } from './provider/provider-client.ts'
import { createRequestRate, type RequestRate } from './request-rate.ts'
import { type AccessTokens, createAccessTokens } from './tokens/access-tokens.ts'
import { createFamilies, createSingleUse, type Families, type SingleUse } from './tokens/replay.ts'
import { createSealedValues, type SealedValues } from './tokens/sealed-values.ts'

export type FrontOptions = {
  /** Issuer of the gateway, and the MCP endpoint. */
  issuer: string
  resource: string
  /** Audiences of the provider's tokens. */
  audiences: readonly string[]
  config: FrontConfig
  allowedRedirectUris: readonly string[] | undefined
  scopes: readonly string[]
  provider: Omit<ProviderClientOptions, 'redirectUri' | 'scopes'>
  /** Verifies the provider's tokens that claims are read from. */
  verifier: TokenVerifier
}

/** The endpoints of the gateway as an authorization server of its own. */
export type Front = {
  answer(exchange: Exchange, asked: FrontRequest): Promise<Reply>
  /** Verifies the tokens that clients have. */
  verifier: TokenVerifier
}

/** State that outlives reloads: keys, used values, rates. */
type State = {
  sealed: SealedValues
  rate: RequestRate
  codes: SingleUse
  logins: SingleUse
  families: Families<Reply>
  accessTokens: AccessTokens
}

const maxCodes = 10_000
const maxFamilies = 20_000

/** Compiles `authorizationServers: front`. Throws if the session key is malformed. */
export function compileFront(options: FrontOptions, context: CompileContext): Front {
  const { issuer, resource, config, verifier } = options
  const addresses = frontAddresses(issuer, resource)
  const state = keptState(options, context)
  const endpoints = compileEndpoints(options, { addresses, state }, context)
  return {
    answer: (exchange, asked) =>
      answerEndpoint(endpoints[asked.name], { exchange, asked, path: addresses.path, rate: state.rate }),
    verifier: config.accessTokens === 'provider' ? verifier : state.accessTokens,
  }
}

type Parts = { addresses: FrontAddresses; state: State }

function compileEndpoints(
  options: FrontOptions,
  { addresses, state }: Parts,
  context: CompileContext,
): Record<FrontEndpointName, FrontEndpoint> {
  const { resource, config, scopes, verifier } = options
  const { sealed, codes, logins, families, accessTokens } = state
  const now = () => context.clock.now()
  const { clients, isAllowedRedirect } = compileClients(options, sealed, context)
  const cookie = createBrowserCookie(addresses.origin)
  const source = config.claims ?? 'accessToken'
  const provider = createProviderClient({
    ...options.provider,
    redirectUri: addresses.endpoint('callback'),
    scopes: [...(source === 'idToken' ? ['openid'] : []), ...(config.scopes ?? [])],
  })
  const registration = config.registration !== false
  const clientDocuments = config.clientDocuments !== false
  const metadata = JSON.stringify(frontMetadata({ addresses, scopes, registration, clientDocuments }))
  const token = compileToken({
    ...{ resource, clients, sealed, provider, accessTokens, codes, families, now },
    readClaims: compileProviderClaims({ source, verifier, now }),
    passesTokens: config.accessTokens === 'provider',
  })
  return {
    server: scriptEndpoint('GET', async () => jsonReply(200, metadata)),
    authorize: browserEndpoint(
      'GET',
      compileAuthorize({
        ...{ addresses, clients, cookie, sealed, scopes, now },
        trustsRedirects: options.allowedRedirectUris !== undefined,
      }),
    ),
    consent: browserEndpoint('POST', compileConsent({ addresses, cookie, sealed, provider, now })),
    callback: browserEndpoint('GET', compileCallback({ addresses, cookie, sealed, provider, logins, now })),
    token: scriptEndpoint('POST', token),
    register: scriptEndpoint(
      'POST',
      registration ? compileRegister({ sealed, isAllowedRedirect, now }) : async () => notFound,
    ),
  }
}

function compileClients(
  { config, allowedRedirectUris }: FrontOptions,
  sealed: SealedValues,
  context: CompileContext,
): { clients: Clients; isAllowedRedirect(uri: string): boolean } {
  const isAllowedRedirect =
    allowedRedirectUris === undefined ? () => true : compileRedirectUris(allowedRedirectUris)
  const networks = config.clientDocumentNetworks ?? []
  const create = () =>
    createClientDocuments(
      { fetch: compileClientDocumentFetch(networks, context), isAllowedRedirect },
      context,
    )
  const name = `mcp front client documents: ${JSON.stringify([networks, allowedRedirectUris])}`
  const documents = config.clientDocuments === false ? undefined : context.retained(name, create)
  return { clients: createClients({ sealed, documents, isAllowedRedirect }), isAllowedRedirect }
}

function keptState({ issuer, audiences, provider, config }: FrontOptions, context: CompileContext): State {
  const { sessionKey, clock, log } = context
  const key = sessionKey === undefined ? undefined : readSessionKey(sessionKey)
  if (sessionKey !== undefined && key === undefined)
    throw new Error('the session key must be 64 hexadecimal digits (32 bytes)')
  // Tokens end with the settings they were issued under, as those of the provider would.
  const grounds = JSON.stringify([provider.issuer, provider.client.id, audiences, config.claims])
  return context.retained(`mcp front: ${JSON.stringify([issuer, grounds, key !== undefined])}`, () => {
    if (key === undefined)
      log.warn({ issuer }, 'config.session.key is not set: a restart ends all logins and registrations')
    const sealed = createSealedValues(key ?? randomBytes(32), { issuer, grounds }, clock)
    const families = createFamilies<Reply>(maxFamilies, clock)
    return {
      sealed,
      families,
      rate: createRequestRate(clock),
      codes: createSingleUse(maxCodes),
      logins: createSingleUse(maxCodes),
      accessTokens: createAccessTokens(sealed, families, clock),
    }
  })
}
