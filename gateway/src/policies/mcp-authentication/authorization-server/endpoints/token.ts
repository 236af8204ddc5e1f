import { createHash } from 'node:crypto'
import type { ReplayCache } from '../../../../identity/tokens/replay.ts'
import type { Rotated, TokenFamilies } from '../../../../identity/tokens/token-families.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { jsonReply } from '../../json-reply.ts'
import { clientDigest, readRequest, scopesOf } from '../authorization-request.ts'
import type { Clients } from '../clients/clients.ts'
import type { ProviderClaims, ReadClaims } from '../provider/claims.ts'
import type { ProviderClient, ProviderTokenResponse, ProviderTokens } from '../provider/client.ts'
import { isResource } from '../resource-parameter.ts'
import type { AccessTokens } from '../tokens/access-tokens.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import { noStore, oauthError } from './oauth-errors.ts'
import { type Parameters, readForm } from './parameters.ts'

export type TokenOptions = {
  resource: string
  clients: Clients
  sealed: SealedValues
  provider: ProviderClient
  readClaims: ProviderClaims
  accessTokens: AccessTokens
  /** Clients receive the access tokens of the provider. */
  passesTokens: boolean
  codes: ReplayCache
  tokenFamilies: TokenFamilies<Reply>
  now(): number
}

/** Lifetime of an unused refresh token; the provider may revoke it earlier. */
const refreshLifetimeMs = 30 * 24 * 3_600_000
/** Servers and proxies refuse larger request heads. */
const maxAccessToken = 12 * 1024
const verifierForm = /^[A-Za-z0-9._~-]{43,128}$/

/** Grant of a login. The next refresh token contains family, generation and scopes. */
type Grant = { client: string; family: string; generation: number; scopes: readonly string[] }

/** Token endpoint (RFC 6749 sections 4.1.3 and 6): checks every grant, then redeems it at the provider. */
export function compileToken(options: TokenOptions) {
  const { resource, clients } = options
  const redeem = compileCodeGrant(options)
  const refresh = compileRefreshGrant(options)

  return async (exchange: Exchange): Promise<Reply> => {
    const form = await readForm(exchange)
    if (form === undefined)
      return oauthError(exchange, 'invalid_request', 'the body must be application/x-www-form-urlencoded')
    if (form.repeated.size > 0) return oauthError(exchange, 'invalid_request', 'duplicate parameter')
    const clientId = form.get('client_id')
    if (clientId === undefined) return oauthError(exchange, 'invalid_request', 'client_id is required')
    if (!clients.isKnownForm(clientId)) return oauthError(exchange, 'invalid_client', 'client_id is unknown')
    if (!isResource(form.get('resource'), resource))
      return oauthError(exchange, 'invalid_target', 'unknown resource')
    const client = clientDigest(clientId)
    switch (form.get('grant_type')) {
      case 'authorization_code':
        return redeem(exchange, form, client)
      case 'refresh_token':
        return refresh(exchange, form, client)
      default:
        return oauthError(
          exchange,
          'unsupported_grant_type',
          'grant_type must be authorization_code or refresh_token',
        )
    }
  }
}

type GrantHandler = (exchange: Exchange, form: Parameters, client: string) => Promise<Reply>

function compileCodeGrant(options: TokenOptions): GrantHandler {
  const { sealed, provider, readClaims, codes, tokenFamilies } = options
  return async (exchange, form, client) => {
    const code = readCode(sealed.unseal('code', form.get('code') ?? ''))
    if (code === undefined) return invalidGrant(exchange, 'the code is invalid or expired')
    const { request } = code
    // OAuth 2.1 section 10.2: clients may omit redirect_uri; PKCE replaces the check.
    const redirectUri = form.get('redirect_uri') ?? request.redirectUri
    if (request.client !== client || request.redirectUri !== redirectUri)
      return invalidGrant(exchange, 'the code belongs to another client_id or redirect_uri')
    if (!isPkceVerifier(form.get('code_verifier'), request.challenge))
      return invalidGrant(exchange, 'code_verifier does not match')
    if (!codes.tryUse(code.id)) {
      // RFC 6749 section 4.1.2: the code has leaked, so the tokens issued for it are revoked.
      tokenFamilies.revoke(code.id)
      return invalidGrant(exchange, 'the code was already used')
    }
    const answer = await provider.redeem(code.providerCode, code.verifier)
    if (answer.kind !== 'tokens') return providerFailure(exchange, answer)
    const read = await readClaims(answer.tokens, { nonce: code.nonce })
    const grant = { client, family: code.id, generation: 0, scopes: request.scopes }
    return tokenResponse(exchange, options, { grant, read, tokens: answer.tokens })
  }
}

function compileRefreshGrant(options: TokenOptions): GrantHandler {
  const { sealed, provider, readClaims, tokenFamilies } = options

  async function rotate(exchange: Exchange, { grant, token, subject }: Refresh): Promise<Rotated<Reply>> {
    const answer = await provider.refresh(token)
    if (answer.kind === 'unavailable') return { isUsed: false, result: providerFailure(exchange, answer) }
    if (answer.kind === 'refused') return { isUsed: true, result: providerFailure(exchange, answer) }
    const tokens = { ...answer.tokens, refreshToken: answer.tokens.refreshToken ?? token }
    const read = await readClaims(tokens, { subject })
    const next = { ...grant, generation: grant.generation + 1 }
    return { isUsed: true, result: tokenResponse(exchange, options, { grant: next, read, tokens }) }
  }

  return async (exchange, form, client) => {
    const refresh = readRefresh(sealed.unseal('refresh', form.get('refresh_token') ?? ''))
    if (refresh === undefined || refresh.grant.client !== client)
      return invalidGrant(exchange, 'the refresh token is invalid or belongs to another client_id')
    const { grant } = refresh
    // A narrower scope has no effect: the response contains the scopes of the token.
    if (!scopesOf(form.get('scope')).every((scope) => grant.scopes.includes(scope)))
      return oauthError(exchange, 'invalid_scope', 'scope exceeds the granted scopes')
    const rotation = await tokenFamilies.rotate(grant, () => rotate(exchange, refresh))
    if (rotation.kind === 'rotated') return rotation.result
    return invalidGrant(exchange, `the refresh token ${rotation.reason}`)
  }
}

type Issue = { grant: Grant; read: ReadClaims; tokens: ProviderTokens }

/** Successful token response (RFC 6749 section 5.1). */
function tokenResponse(
  exchange: Exchange,
  options: TokenOptions,
  { grant: asked, read, tokens }: Issue,
): Reply {
  const { sealed, accessTokens, passesTokens, now } = options
  if (read.kind === 'unavailable') return providerFailure(exchange, read)
  if (read.kind === 'refused') return invalidGrant(exchange, `token of the provider refused: ${read.reason}`)
  const { claims, expiresAt } = read
  const grant = { ...asked, scopes: grantedScopes(asked.scopes, tokens.scope) }
  const expiresIn = Math.floor((expiresAt - now()) / 1000)
  if (expiresIn <= 0) return invalidGrant(exchange, 'token of the provider refused: expired')
  const accessToken = passesTokens
    ? tokens.accessToken
    : accessTokens.issue({ ...claims, exp: Math.floor(expiresAt / 1000) }, grant.family, expiresAt)
  if (accessToken.length > maxAccessToken)
    return oauthError(exchange, 'server_error', 'the claims of the provider are too large for a token')
  return jsonReply(
    200,
    {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: expiresIn,
      ...(grant.scopes.length === 0 ? {} : { scope: grant.scopes.join(' ') }),
      ...(tokens.refreshToken === undefined
        ? {}
        : {
            refresh_token: sealed.seal(
              'refresh',
              writeRefresh(grant, tokens.refreshToken, claims['sub']),
              now() + refreshLifetimeMs,
            ),
          }),
    },
    noStore,
  )
}

function providerFailure(
  exchange: Exchange,
  { kind }: Pick<Exclude<ProviderTokenResponse, { kind: 'tokens' }>, 'kind'>,
): Reply {
  if (kind === 'refused') return invalidGrant(exchange, 'the identity provider refused the grant')
  return oauthError(exchange, 'temporarily_unavailable', 'the identity provider does not respond')
}

function invalidGrant(exchange: Exchange, description: string): Reply {
  return oauthError(exchange, 'invalid_grant', description)
}

function isPkceVerifier(verifier: string | undefined, challenge: string): boolean {
  if (verifier === undefined || !verifierForm.test(verifier)) return false
  return createHash('sha256').update(verifier).digest('base64url') === challenge
}

function readCode(value: JsonObject | undefined) {
  const request = readRequest(value)
  if (request === undefined || value === undefined) return undefined
  const { u: providerCode, v: verifier, n: nonce, i: id } = value
  if (typeof providerCode !== 'string' || typeof verifier !== 'string') return undefined
  if (typeof nonce !== 'string' || typeof id !== 'string') return undefined
  return { request, providerCode, verifier, nonce, id }
}

type Refresh = { grant: Grant; token: string; subject: string | undefined }

function writeRefresh(grant: Grant, token: string, subject: unknown): JsonObject {
  const { client, family, generation, scopes } = grant
  const ofSubject = typeof subject === 'string' ? { s: subject } : {}
  return { c: client, f: family, g: generation, o: scopes.join(' '), u: token, ...ofSubject }
}

function readRefresh(value: JsonObject | undefined): Refresh | undefined {
  if (value === undefined) return undefined
  const { c: client, f: family, g: generation, o: scope, u: token, s: subject } = value
  if (typeof client !== 'string' || typeof family !== 'string' || typeof generation !== 'number')
    return undefined
  if (typeof scope !== 'string' || typeof token !== 'string') return undefined
  const grant = { client, family, generation, scopes: scopesOf(scope) }
  return { grant, token, subject: typeof subject === 'string' ? subject : undefined }
}

/**
 * Requested scopes that the provider granted. It returns `scope` only if they differ (RFC 6749 section 5.1).
 */
function grantedScopes(asked: readonly string[], stated: string | undefined): readonly string[] {
  if (stated === undefined) return asked
  const granted = scopesOf(stated)
  return asked.filter((scope) => granted.includes(scope))
}
