import { createHash, randomBytes } from 'node:crypto'
import { browserRedirect } from '../../../../identity/html-page.ts'
import { firstHeader, type Headers } from '../../../../net/http/headers.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { type AuthorizationRequest, readRequest, writeRequest } from '../authorization-request.ts'
import type { BrowserCookie } from '../browser-cookie.ts'
import { redirectWith } from '../clients/redirect-targets.ts'
import type { EndpointUrls } from '../metadata.ts'
import type { ProviderClient } from '../provider/client.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import { loginLifetimeMs } from './authorize.ts'
import { errorPage } from './pages.ts'
import { readForm } from './parameters.ts'

export type ConsentOptions = {
  urls: EndpointUrls
  cookie: BrowserCookie
  sealed: SealedValues
  provider: ProviderClient
  now(): number
}

/**
 * Consent endpoint: receives the form of the consent page, and redirects the browser to the provider. Three
 * checks reject cross-site forms: `Origin`, `Sec-Fetch-Site`, and the browser cookie that the sealed request
 * is bound to.
 */
export function compileConsent({ urls, cookie, sealed, provider, now }: ConsentOptions) {
  async function toProvider(exchange: Exchange, request: AuthorizationRequest): Promise<Reply> {
    const verifier = randomBytes(32).toString('base64url')
    const nonce = randomBytes(16).toString('base64url')
    const login = {
      ...writeRequest(request),
      v: verifier,
      n: nonce,
      i: randomBytes(16).toString('base64url'),
    }
    const url = await provider.authorizationUrl({
      state: sealed.seal('login', login, now() + loginLifetimeMs),
      challenge: createHash('sha256').update(verifier).digest('base64url'),
      nonce,
      scopes: request.scopes,
    })
    if (url !== undefined) return browserRedirect(url)
    exchange.log.refusedBy = 'mcp-authentication: temporarily_unavailable'
    return refused(request, 'temporarily_unavailable', 'the identity provider does not respond')
  }

  function refused(request: AuthorizationRequest, error: string, description: string): Reply {
    const { redirectUri, state } = request
    return browserRedirect(
      redirectWith(redirectUri, { error, error_description: description, state, iss: urls.issuer }),
    )
  }

  return async (exchange: Exchange): Promise<Reply> => {
    const { headers } = exchange.facts.request
    if (!isSameOrigin(headers, urls.origin)) return errorPage(exchange, 403, 'the form is from another site')
    const form = await readForm(exchange)
    if (form === undefined || form.repeated.size > 0) return errorPage(exchange, 400, 'the form is malformed')
    const request = readRequest(sealed.unseal('request', form.get('request') ?? ''))
    if (request === undefined) return errorPage(exchange, 400, 'the sign-in has expired')
    // Digests of random 256-bit ids: a timing attack on the comparison is infeasible.
    if (cookie.digest(headers) !== request.browser)
      return errorPage(exchange, 403, 'the sign-in started in another browser, or cookies are blocked')
    if (form.get('decision') === 'allow') return toProvider(exchange, request)
    exchange.log.refusedBy = 'mcp-authentication: access_denied'
    return refused(request, 'access_denied', 'access was denied on the consent page')
  }
}

function isSameOrigin(headers: Headers, origin: string): boolean {
  const site = firstHeader(headers, 'sec-fetch-site')
  const sender = firstHeader(headers, 'origin')
  return (site === undefined || site === 'same-origin') && (sender === undefined || sender === origin)
}
