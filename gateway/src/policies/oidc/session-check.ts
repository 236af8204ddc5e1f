import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { isNavigation } from './navigation.ts'
import type { LoginPaths, PublicUrls } from './paths.ts'
import type { RefreshResult } from './refresh.ts'
import { failureReply, loginRequired } from './replies.ts'
import type { LoginCookies } from './session/cookies.ts'
import type { Session, Sessions } from './session/sessions.ts'

export type SessionCheckOptions = {
  paths: LoginPaths
  urls: PublicUrls
  cookies: LoginCookies
  sessions: Sessions
  idleMs: number
  /** Whether the session has ended by a logout. */
  isEnded(session: string): boolean
  refresh(session: Session): Promise<RefreshResult>
  start(exchange: Exchange): Promise<Reply>
  callback(exchange: Exchange): Promise<Reply>
  logout(exchange: Exchange): Promise<Reply>
  now(): number
}

/** A cookie is replaced, which extends the session, after this part of the idle time. */
const renewalPart = 0.1
const maxRenewalMs = 60_000
/** Tokens are refreshed in the last part of their lifetime. */
const refreshPart = 0.2

/** Compiles the policy that admits requests with a session. Writes `facts.jwt` and `auth.session`. */
export function compileSessionCheck(options: SessionCheckOptions): Policy {
  const { paths, urls, cookies, sessions, now } = options
  const renewalMs = Math.min(maxRenewalMs, options.idleMs * renewalPart)

  function at({ facts: { request } }: Exchange, maxAgeSeconds = 0) {
    return { headers: request.headers, isSecure: urls.isSecure(request), maxAgeSeconds }
  }

  function stored(exchange: Exchange, text: string, { endsAt }: Session): string[] {
    return cookies.setSession(text, at(exchange, Math.ceil((endsAt - now()) / 1_000)))
  }

  function admit(exchange: Exchange, session: Session, text: string | undefined): undefined {
    exchange.facts.jwt ??= session.claims
    const setCookies = text === undefined ? renewed(exchange, session) : stored(exchange, text, session)
    const outer = exchange.auth.session
    exchange.auth.session = {
      logoutPath: paths.logout,
      endsAt: session.endsAt,
      ...outer,
      isEnded: () => outer?.isEnded?.() === true || options.isEnded(session.id),
      setCookies: [...(outer?.setCookies ?? []), ...setCookies],
    }
    return undefined
  }

  /** Header values that extend the session, if enough of its idle time has passed. */
  function renewed(exchange: Exchange, session: Session): string[] {
    if (now() < session.sealedAt + renewalMs) return []
    const text = sessions.seal(session)
    return text === undefined ? [] : stored(exchange, text, session)
  }

  function challenge(exchange: Exchange): Reply | Promise<Reply> {
    if (isNavigation(exchange.facts.request)) return options.start(exchange)
    const removal = cookies.removeSession(at(exchange))
    return loginRequired(exchange, removal.length === 0 ? {} : { 'set-cookie': removal })
  }

  async function refreshed(exchange: Exchange, session: Session): Promise<Reply | undefined> {
    const result = await options.refresh(session)
    if (result.kind === 'refreshed') {
      const fresh = sessions.open(result.text)
      return fresh === undefined ? challenge(exchange) : admit(exchange, fresh, result.text)
    }
    // The tokens are valid: another replica may have refreshed them, or the provider responds later.
    const isValid = session.tokens !== undefined && now() < session.tokens.until
    if (isValid && !options.isEnded(session.id)) return admit(exchange, session, undefined)
    if (result.kind === 'ended') return challenge(exchange)
    return failureReply(exchange, {
      status: 503,
      code: 'provider_unavailable',
      reason: `the session must be renewed, and ${result.reason}`,
      headers: { 'retry-after': '5' },
    })
  }

  return {
    name: 'oidc',
    onRequest(exchange) {
      const { path, method } = exchange.facts.request
      if (path === paths.callback) return method === 'GET' ? options.callback(exchange) : notAllowed('GET')
      if (path === paths.logout)
        return method === 'GET' || method === 'POST' ? options.logout(exchange) : notAllowed('GET, POST')
      const text = cookies.session(at(exchange))
      const session = text === undefined ? undefined : sessions.open(text)
      if (session === undefined || options.isEnded(session.id)) return challenge(exchange)
      if (isForeignUpgrade(exchange, urls)) return refuseUpgrade(exchange)
      return isDue(session, now()) ? refreshed(exchange, session) : admit(exchange, session, undefined)
    },
    onReply(exchange, reply) {
      const { session } = exchange.auth
      const setCookies = session?.setCookies ?? []
      if (setCookies.length === 0) return reply
      exchange.auth.session = { ...session, setCookies: [] }
      addCookies(reply.headers, setCookies)
      return reply
    },
    explain: ({ auth: { session } }) => ({ session: session === undefined ? 'absent' : 'accepted' }),
  }
}

/** Whether a page of another origin opens a WebSocket: browsers permit it, with cookies of the same site. */
function isForeignUpgrade({ upgrade, facts: { request } }: Exchange, urls: PublicUrls): boolean {
  const origin = upgrade === undefined ? undefined : firstHeader(request.headers, 'origin')
  return origin !== undefined && origin !== new URL(urls.redirectUri(request)).origin
}

function refuseUpgrade(exchange: Exchange): Reply {
  return failureReply(exchange, {
    status: 403,
    code: 'cross_origin_upgrade',
    reason: 'the page of another origin may not use this session',
  })
}

function isDue({ tokens, refreshToken }: Session, now: number): boolean {
  if (tokens === undefined || refreshToken === undefined) return false
  return now >= tokens.until - (tokens.until - tokens.from) * refreshPart
}

/** Adds cookies of one browser, which shared caches must not store with the reply. */
function addCookies(headers: Headers, setCookies: readonly string[]): void {
  headers['set-cookie'] = [headers['set-cookie'] ?? [], ...setCookies].flat()
  const control = [headers['cache-control'] ?? []].flat().join(', ')
  if (/\b(?:no-store|private)\b/i.test(control)) return
  const kept = control
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|s-maxage)\b/i.test(directive))
  headers['cache-control'] = ['private', ...kept].join(', ')
}

function notAllowed(allow: string): Reply {
  return { status: 405, headers: { allow }, body: undefined }
}
