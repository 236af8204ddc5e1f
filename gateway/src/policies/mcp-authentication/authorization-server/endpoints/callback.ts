import { browserRedirect } from '../../../../identity/html-page.ts'
import type { ReplayCache } from '../../../../identity/tokens/replay.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { type AuthorizationRequest, readRequest, writeRequest } from '../authorization-request.ts'
import type { BrowserCookie } from '../browser-cookie.ts'
import { redirectWith } from '../clients/redirect-targets.ts'
import type { EndpointUrls } from '../metadata.ts'
import type { ProviderClient } from '../provider/client.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import { errorPage } from './pages.ts'
import { type Parameters, readParameters } from './parameters.ts'

export type CallbackOptions = {
  urls: EndpointUrls
  cookie: BrowserCookie
  sealed: SealedValues
  provider: ProviderClient
  /** Completed logins. */
  logins: ReplayCache
  now(): number
}

/** Clients redeem codes immediately; the provider's code inside has a similar lifetime. */
const codeLifetimeMs = 60_000
const maxProviderCode = 4_096

/** Errors of the provider that are forwarded to the client; others become `server_error`. */
const forwardedErrors: ReadonlySet<string> = new Set([
  'access_denied',
  'invalid_scope',
  'temporarily_unavailable',
  'login_required',
  'consent_required',
  'interaction_required',
])

/**
 * Redirect endpoint for the provider: receives its authorization response, and sends a code of the gateway to
 * the client. The code contains the sealed code of the provider, which the token endpoint redeems: each code
 * works at most once, at any replica.
 */
export function compileCallback(options: CallbackOptions) {
  const { urls, cookie, sealed, provider, logins, now } = options

  function toClient({ redirectUri, state }: AuthorizationRequest, parameters: Record<string, string>): Reply {
    return browserRedirect(redirectWith(redirectUri, { ...parameters, state, iss: urls.issuer }))
  }

  function clientResponse(exchange: Exchange, parameters: Parameters, login: Login): Reply {
    const error = parameters.get('error')
    const code = parameters.get('code')
    if (error === undefined && code !== undefined && code.length <= maxProviderCode) {
      const { verifier, nonce, id, request } = login
      const value = { ...writeRequest(request), u: code, v: verifier, n: nonce, i: id }
      return toClient(request, { code: sealed.seal('code', value, now() + codeLifetimeMs) })
    }
    const shown = error !== undefined && forwardedErrors.has(error) ? error : 'server_error'
    exchange.log.refusedBy = `mcp-authentication: provider returned ${shown}`
    return toClient(login.request, {
      error: shown,
      error_description: 'the identity provider refused the login',
    })
  }

  return async (exchange: Exchange): Promise<Reply> => {
    const { query, headers } = exchange.facts.request
    const parameters = readParameters(query)
    const login = readLogin(sealed.unseal('login', parameters.get('state') ?? ''))
    if (login === undefined || parameters.repeated.size > 0)
      return errorPage(exchange, 400, 'the response of the identity provider does not belong to a sign-in')
    if (cookie.digest(headers) !== login.request.browser)
      return errorPage(exchange, 403, 'the sign-in started in another browser, or cookies are blocked')
    // RFC 9207 section 2.4: responses of other servers must be rejected (mix-up attack).
    if (!(await provider.isIssuer(parameters.get('iss'))))
      return errorPage(exchange, 400, 'the response is not from the identity provider')
    if (!logins.tryUse(login.id)) return errorPage(exchange, 400, 'the sign-in is already complete')
    return clientResponse(exchange, parameters, login)
  }
}

type Login = { request: AuthorizationRequest; verifier: string; nonce: string; id: string }

function readLogin(value: ReturnType<SealedValues['unseal']>): Login | undefined {
  const request = readRequest(value)
  if (request === undefined || value === undefined) return undefined
  const { v: verifier, n: nonce, i: id } = value
  if (typeof verifier !== 'string' || typeof nonce !== 'string' || typeof id !== 'string') return undefined
  return { request, verifier, nonce, id }
}
