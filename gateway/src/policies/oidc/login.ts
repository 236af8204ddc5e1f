import { randomBytes, timingSafeEqual } from 'node:crypto'
import { browserRedirect } from '../../identity/html-page.ts'
import type { ReplayCache } from '../../identity/tokens/replay.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { sentPath } from '../../pipeline/exchange.ts'
import type { ReadUserClaims } from './claims.ts'
import { type LoginPaths, type PublicUrls, returnTarget } from './paths.ts'
import type { LoginProvider, LoginTokens, ProviderResult } from './provider.ts'
import { failureReply, type LoginFailure } from './replies.ts'
import type { LoginCookies } from './session/cookies.ts'
import type { Sealing } from './session/sealing.ts'
import type { SessionContent, Sessions } from './session/sessions.ts'

export type LoginOptions = {
  paths: LoginPaths
  urls: PublicUrls
  cookies: LoginCookies
  sealing: Sealing
  sessions: Sessions
  provider: LoginProvider
  readClaims: ReadUserClaims
  /** Completed logins. */
  completed: ReplayCache
  maxAgeMs: number
  /** Path for a further attempt without a known target. */
  home: string
  now(): number
}

/** Time for the pages of the provider. */
const loginLifetimeMs = 15 * 60_000
const maxQueryLength = 8_192
const stateForm = /^([0-9a-z]{9}[A-Za-z0-9_-]{16})\.[A-Za-z0-9_-]{22}$/

/** Login in progress, sealed in a cookie of its own: tabs do not disturb each other. */
type Login = { state: string; nonce: string; verifier: string; target: string; redirectUri: string }

/** Starts a login: redirects to the provider. `headers` are added to the reply. */
export function compileLoginStart(options: LoginOptions) {
  const { paths, urls, cookies, sealing, provider, now } = options

  return async (exchange: Exchange): Promise<Reply> => {
    const { request } = exchange.facts
    const target = returnTarget(sentPath(request) + request.query, paths)
    const id = now().toString(36).padStart(9, '0') + random(12)
    const login: Login = {
      state: `${id}.${random(16).slice(0, 22)}`,
      nonce: random(16),
      verifier: random(32),
      target,
      redirectUri: urls.redirectUri(request),
    }
    const started = await provider.authorizationUrl(login)
    if (started.kind !== 'found') return failureReply(exchange, unavailable(started.reason, target))
    exchange.log.refusedBy = 'oidc: login started'
    const text = sealing.seal({ ...login, expiresAt: now() + loginLifetimeMs })
    const at = {
      headers: request.headers,
      isSecure: urls.isSecure(request),
      maxAgeSeconds: loginLifetimeMs / 1_000,
    }
    return browserRedirect(started.value, { 'set-cookie': cookies.setLogin(id, text, at) })
  }
}

/** Redirect endpoint: redeems the code, and starts the session. */
export function compileCallback(options: LoginOptions) {
  const { urls, cookies, sealing, sessions, provider, readClaims, completed, now } = options

  function readLogin(text: string | undefined, state: string): Login | undefined {
    const value = text === undefined ? undefined : sealing.unseal(text)
    if (value === undefined) return undefined
    const { state: expected, nonce, verifier, target, redirectUri, expiresAt } = value
    if (typeof expected !== 'string' || !isEqual(expected, state)) return undefined
    if (typeof expiresAt !== 'number' || expiresAt <= now()) return undefined
    if (typeof nonce !== 'string' || typeof verifier !== 'string') return undefined
    if (typeof target !== 'string' || typeof redirectUri !== 'string') return undefined
    return { state: expected, nonce, verifier, target, redirectUri }
  }

  async function sessionOf(login: Login, query: string): Promise<ProviderResult<SessionContent>> {
    const tokens = await provider.redeem({ ...login, query })
    if (tokens.kind !== 'found') return tokens
    const user = await readClaims(tokens.value, undefined)
    if (user.kind !== 'found') return user
    const endsAt = now() + options.maxAgeMs
    const { refreshToken } = tokens.value
    return {
      kind: 'found',
      value: {
        ...{ id: random(16), generation: 0, ...user.value, refreshToken, endsAt },
        tokens: refreshToken === undefined ? undefined : lifetimeOf(tokens.value, now()),
      },
    }
  }

  return async (exchange: Exchange): Promise<Reply> => {
    const { request } = exchange.facts
    const parameters = new URLSearchParams(request.query)
    const state = parameters.get('state') ?? ''
    const id = stateForm.exec(state)?.[1]
    const isMalformed = request.query.length > maxQueryLength || hasRepeated(parameters)
    const at = { headers: request.headers, isSecure: urls.isSecure(request) }
    const login = id === undefined || isMalformed ? undefined : readLogin(cookies.login(id, at), state)
    if (id === undefined || login === undefined)
      return failureReply(exchange, { ...unknownLogin, retry: options.home })
    const removal = cookies.removeLogin(id, { ...at, maxAgeSeconds: 0 })
    const fail = (failure: LoginFailure) =>
      failureReply(exchange, { ...failure, retry: login.target, headers: { 'set-cookie': [removal] } })
    // A repeated code would make the provider revoke the tokens of the first use (RFC 6749 section 4.1.2).
    if (!completed.tryUse(id)) return fail(unknownLogin)
    const found = await sessionOf(login, request.query)
    if (found.kind === 'unavailable') return fail(unavailable(found.reason, login.target))
    if (found.kind === 'refused') return fail({ status: 403, code: 'login_refused', reason: found.reason })
    const text = sessions.seal(found.value)
    if (text === undefined) return fail(tooLarge)
    const maxAgeSeconds = Math.ceil(options.maxAgeMs / 1_000)
    const session = cookies.setSession(text, { ...at, maxAgeSeconds })
    return browserRedirect(login.target, { 'set-cookie': [...session, removal] })
  }
}

const unknownLogin: LoginFailure = {
  status: 400,
  code: 'login_unknown',
  reason: 'the login has expired, was already completed, or began in another browser',
}

const tooLarge: LoginFailure = {
  status: 500,
  code: 'session_too_large',
  reason: 'the claims and tokens of the user are too large for cookies: restrict them with oidc.claims',
}

function unavailable(reason: string, retry: string): LoginFailure {
  return { status: 503, code: 'provider_unavailable', reason, retry, headers: { 'retry-after': '5' } }
}

const defaultLifetimeSeconds = 600
const minLifetimeSeconds = 5

/** Lifetime of tokens, with a default for providers that do not state it. */
export function lifetimeOf(
  { expiresIn = defaultLifetimeSeconds }: LoginTokens,
  now: number,
): { from: number; until: number } {
  return { from: now, until: now + Math.max(minLifetimeSeconds, expiresIn) * 1_000 }
}

function hasRepeated(parameters: URLSearchParams): boolean {
  return new Set(parameters.keys()).size !== parameters.size
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function random(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}
