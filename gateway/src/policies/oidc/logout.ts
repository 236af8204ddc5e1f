import { browserRedirect } from '../../identity/html-page.ts'
import { firstHeader } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange, RequestFacts } from '../../pipeline/exchange.ts'
import { type LoginPaths, type PublicUrls, returnTarget } from './paths.ts'
import type { LoginProvider } from './provider.ts'
import { confirmationPage, failureReply, loggedOutPage } from './replies.ts'
import type { LoginCookies } from './session/cookies.ts'
import type { Sessions } from './session/sessions.ts'

export type LogoutOptions = {
  clientId: string
  /** Registered address after the logout at the provider. */
  redirectUri: string | undefined
  paths: LoginPaths
  urls: PublicUrls
  cookies: LoginCookies
  sessions: Sessions
  provider: LoginProvider
  /** Ends a session on all data planes, also for copies of its cookie. */
  end(session: string): void
}

/**
 * Logout endpoint: ends the session here, and at the provider (OpenID Connect RP-Initiated Logout). Requests
 * of other sites need a confirmation.
 */
export function compileLogout(options: LogoutOptions) {
  const { clientId, redirectUri, paths, urls, cookies, sessions, provider } = options

  return async (exchange: Exchange): Promise<Reply> => {
    const { request } = exchange.facts
    const { headers } = request
    const isSecure = urls.isSecure(request)
    if (isForeign(request, urls)) {
      if (request.method === 'GET') return confirmationPage(paths.logout)
      return failureReply(exchange, {
        status: 403,
        code: 'cross_site_logout',
        reason: 'the request is from another site',
      })
    }
    const text = cookies.session({ headers, isSecure })
    const session = text === undefined ? undefined : sessions.open(text)
    const removal = { 'set-cookie': cookies.removeSession({ headers, isSecure, maxAgeSeconds: 0 }) }
    if (session === undefined) return loggedOutPage(nextPath(request, { paths, urls }), removal)
    options.end(session.id)
    // The reply does not depend on the result.
    if (session.refreshToken !== undefined) void provider.revoke(session.refreshToken)
    const after = redirectUri === undefined ? undefined : urls.absolute(redirectUri, request)
    const url = await provider.endSessionUrl({
      client_id: clientId,
      ...(session.idToken === undefined ? {} : { id_token_hint: session.idToken }),
      ...(after === undefined ? {} : { post_logout_redirect_uri: after }),
    })
    const target = url ?? after
    if (target === undefined) return loggedOutPage(nextPath(request, { paths, urls }), removal)
    return browserRedirect(target, removal)
  }
}

/** Whether a page of another origin sent the request. Clients other than browsers do not state a site. */
function isForeign(request: RequestFacts, urls: PublicUrls): boolean {
  const site = firstHeader(request.headers, 'sec-fetch-site')
  const origin = firstHeader(request.headers, 'origin')
  const isSame = site === undefined || site === 'same-origin' || site === 'none'
  if (request.method === 'GET' || request.method === 'HEAD') {
    // A link on a related host, such as a portal, may log out; its images and scripts may not.
    const isLink = site === 'same-site' && firstHeader(request.headers, 'sec-fetch-mode') === 'navigate'
    return !isSame && !isLink
  }
  return !isSame || (origin !== undefined && origin !== new URL(urls.redirectUri(request)).origin)
}

/** Path for a link to a further login: the parameter `return`, or the page with the link to the logout. */
function nextPath(
  request: RequestFacts,
  { paths, urls }: Pick<LogoutOptions, 'paths' | 'urls'>,
): string | undefined {
  const wanted = new URLSearchParams(request.query).get('return')
  if (wanted !== null) return returnTarget(wanted, paths)
  const referer = URL.parse(firstHeader(request.headers, 'referer') ?? '')
  if (referer?.origin !== new URL(urls.redirectUri(request)).origin) return undefined
  return returnTarget(referer.pathname + referer.search, paths)
}
