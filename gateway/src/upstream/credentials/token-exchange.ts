import { createHash } from 'node:crypto'
import { compileCheckedCel } from '../../cel/checked.ts'
import { milliseconds } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Caller } from './caller.ts'
import { locationRoots } from './credential-location.ts'
import { mayAct } from './may-act/may-act.ts'
import type { CrossAppAccessConfig, TokenCacheConfig, TokenExchangeConfig } from './oauth-config.ts'
import type { AuthorizedRequest } from './placement.ts'
import { compileTokenSource, type TokenSource } from './subject-token.ts'
import { createTokenCache, type TimedToken } from './token-cache.ts'
import { compileTokenEndpoint, type IssuedToken } from './token-endpoint.ts'

/** Tokens for a backend from an authorization server. */
export type TokenIssuer = {
  /** `gateway`: the token does not depend on the client. */
  readonly source: 'gateway' | 'client'
  /**
   * The token for a call. Throws and rejects with `GatewayError`: `credential_missing` if the request has no
   * token to exchange, otherwise those of `RequestToken`.
   */
  token(caller: Caller): string | Promise<string>
  /** Removes the exchanged tokens of the client from the request. */
  strip(request: AuthorizedRequest, caller: Caller): void
}

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'
const idJagType = 'urn:ietf:params:oauth:token-type:id-jag'
const grants = {
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
  jwtBearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
  clientCredentials: 'client_credentials',
}

/** Compiles `backendAuth.oauthTokenExchange`. Throws if a file in its settings is unreadable. */
export function compileTokenExchange(config: TokenExchangeConfig, context: CompileContext): TokenIssuer {
  const { grantType = 'tokenExchange', requestedTokenType } = config
  const request = compileTokenEndpoint(config, context)
  const params = compileParams(config.additionalParams)
  const subject =
    grantType === 'clientCredentials' ? undefined : compileTokenSource(config.subjectToken?.source)
  const actor = config.actorToken && compileTokenSource(config.actorToken.source)
  const check = config.actorToken?.enforceMayAct === true ? requirePermittedActor : undefined

  async function issue(tokens: ClientTokens, more: Params): Promise<IssuedToken> {
    const form = new URLSearchParams({ grant_type: grants[grantType] })
    if (grantType === 'jwtBearer') form.append('assertion', tokens.subject)
    if (grantType === 'tokenExchange') {
      form.append('subject_token', tokens.subject)
      form.append('subject_token_type', config.subjectToken?.tokenType ?? accessTokenType)
      if (actor !== undefined) {
        form.append('actor_token', tokens.actor)
        form.append('actor_token_type', config.actorToken?.tokenType ?? accessTokenType)
      }
      if (requestedTokenType !== undefined) form.append('requested_token_type', requestedTokenType)
    }
    appendTargets(form, config)
    for (const [name, value] of more) form.append(name, value)
    const issued = await request(form)
    const hasOtherType =
      requestedTokenType !== undefined && (issued.issuedType ?? requestedTokenType) !== requestedTokenType
    if (hasOtherType) throw unusable('another issued_token_type')
    if (issued.type !== 'bearer') throw unusable('another token_type than Bearer')
    return issued
  }

  return createIssuer({ config, subject, actor, check, params, issue }, context)
}

function requirePermittedActor({ subject, actor }: ClientTokens): void {
  if (!mayAct(subject, actor))
    throw new GatewayError('credential_forbidden', 'the token of the client does not permit the actor')
}

/** Compiles `backendAuth.crossAppAccess`. Throws if a file in its settings is unreadable. */
export function compileCrossAppAccess(config: CrossAppAccessConfig, context: CompileContext): TokenIssuer {
  const {
    identityProvider,
    resourceAuthorizationServer,
    audience,
    scopes,
    accessTokenScopes = scopes,
  } = config
  const requestAssertion = compileTokenEndpoint(identityProvider, context)
  const requestAccess = compileTokenEndpoint(resourceAuthorizationServer, context)

  async function issue({ subject }: ClientTokens): Promise<IssuedToken> {
    const first = new URLSearchParams({
      grant_type: grants.tokenExchange,
      subject_token: subject,
      subject_token_type: config.subjectToken?.tokenType ?? idTokenType,
      requested_token_type: idJagType,
    })
    appendTargets(first, { audiences: [audience], scopes, resources: config.resources })
    const assertion = await requestAssertion(first)
    if (assertion.issuedType !== idJagType) throw unusable('another issued_token_type than id-jag')
    if (assertion.type !== undefined && assertion.type !== 'n_a')
      throw unusable('an unknown token_type of an ID-JAG')
    const second = new URLSearchParams({ grant_type: grants.jwtBearer, assertion: assertion.token })
    appendTargets(second, { scopes: accessTokenScopes })
    const issued = await requestAccess(second).catch((error: unknown) => {
      // The assertion is not the token of the client: the client cannot resolve its refusal.
      throw error instanceof GatewayError && error.code === 'credential_refused'
        ? unusable('a refused ID-JAG')
        : error
    })
    if (issued.type !== 'bearer') throw unusable('another token_type than Bearer')
    return issued
  }

  const subject = compileTokenSource(config.subjectToken?.source)
  return createIssuer({ config, subject, actor: undefined, params: () => [], issue }, context)
}

type ClientTokens = { readonly subject: string; readonly actor: string }
type Params = readonly (readonly [name: string, value: string])[]

type IssuerParts = {
  readonly config: { readonly cache?: TokenCacheConfig | undefined }
  readonly subject: TokenSource | undefined
  readonly actor: TokenSource | undefined
  /** Refuses tokens by an exception, before each use of the cache. */
  readonly check?: ((tokens: ClientTokens) => void) | undefined
  params(caller: Caller): Params
  issue(tokens: ClientTokens, params: Params): Promise<IssuedToken>
}

const defaultEntries = 8192
const defaultTtlMs = 300_000

function createIssuer(parts: IssuerParts, { clock, retained }: CompileContext): TokenIssuer {
  const { config, subject, actor, check, params, issue } = parts
  const maxEntries = config.cache?.maxEntries ?? defaultEntries
  const ttlMs = milliseconds(config.cache?.defaultTtl) || defaultTtlMs
  // Tokens survive reloads, and equal settings share them.
  const name = `backends/tokens/${digestOf([JSON.stringify(config)])}`
  const cache = maxEntries === 0 ? undefined : retained(name, () => createTokenCache(maxEntries, clock))

  async function request(tokens: ClientTokens, more: Params): Promise<TimedToken> {
    const { token, lifetimeMs = ttlMs } = await issue(tokens, more)
    const ofSubject = subjectLifetime(tokens.subject, clock.now())
    return { token, lifetimeMs: Math.min(lifetimeMs, ofSubject) }
  }

  return {
    source: (subject ?? actor) === undefined ? 'gateway' : 'client',
    token(caller) {
      const tokens = { subject: subject?.read(caller) ?? '', actor: actor?.read(caller) ?? '' }
      check?.(tokens)
      const more = params(caller)
      if (cache === undefined) return request(tokens, more).then(({ token }) => token)
      // A digest: the cache contains no token of a client.
      const key = digestOf([tokens.subject, tokens.actor, ...more.flat()])
      return cache.get(key, () => request(tokens, more))
    },
    strip(outgoing, caller) {
      for (const source of [subject, actor]) {
        const token = source?.find(caller)
        if (token !== undefined) source?.remove(outgoing, token)
      }
    },
  }
}

function appendTargets(
  form: URLSearchParams,
  {
    audiences = [],
    scopes = [],
    resources = [],
  }: Pick<TokenExchangeConfig, 'audiences' | 'scopes' | 'resources'>,
): void {
  for (const audience of audiences) form.append('audience', audience)
  if (scopes.length > 0) form.append('scope', scopes.join(' '))
  for (const resource of resources) form.append('resource', resource)
}

/** Compiles the parameters of `additionalParams`. A failed expression denies the request. */
function compileParams(config: TokenExchangeConfig['additionalParams'] = {}): (caller: Caller) => Params {
  const programs = Object.entries(config).map(
    ([name, source]) => [name, compileCheckedCel(source, locationRoots)] as const,
  )
  return ({ facts }) =>
    programs.map(([name, program]) => {
      const value = program.evaluate(facts ?? {})
      if (typeof value !== 'string') throw new Error(`additionalParams.${name} must be a text`)
      return [name, value]
    })
}

/** Remaining lifetime of a JWT; infinite for other tokens. The signature is not relevant here. */
function subjectLifetime(token: string, nowMs: number): number {
  const [, payload, signature] = token.split('.', 4)
  if (payload === undefined || signature === undefined) return Number.POSITIVE_INFINITY
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const exp = typeof claims === 'object' && claims !== null && 'exp' in claims ? claims.exp : undefined
    return typeof exp === 'number' ? Math.max(0, exp * 1_000 - nowMs) : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Digest of texts, with their lengths: no two lists have the same input. */
function digestOf(texts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(`${text.length}:`).update(text)
  return hash.digest('base64url')
}

function unusable(reason: string): GatewayError {
  return new GatewayError('credential_unavailable', 'no credential for the backend is available', {
    cause: new Error(`token endpoint: ${reason} in the response`),
  })
}
