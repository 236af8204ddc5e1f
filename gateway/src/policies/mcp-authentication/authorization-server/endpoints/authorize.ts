import { browserRedirect } from '../../../../identity/html-page.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { type AuthorizationRequest, clientDigest, scopesOf, writeRequest } from '../authorization-request.ts'
import { type BrowserCookie, browserDigest } from '../browser-cookie.ts'
import type { Client } from '../clients/client.ts'
import type { Clients } from '../clients/clients.ts'
import {
  isRegisteredRedirect,
  type RedirectTarget,
  readRedirectTarget,
  redirectWith,
} from '../clients/redirect-targets.ts'
import type { EndpointUrls } from '../metadata.ts'
import { isResource } from '../resource-parameter.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import type { OAuthError } from './oauth-errors.ts'
import { consentPage, errorPage, returnPage } from './pages.ts'
import { type Parameters, readParameters } from './parameters.ts'

export type AuthorizeOptions = {
  urls: EndpointUrls
  clients: Clients
  cookie: BrowserCookie
  sealed: SealedValues
  /** Scopes that clients may request; an empty list accepts all. */
  scopes: readonly string[]
  /** Whether the configuration restricts the redirect URIs of clients. */
  trustsRedirects: boolean
  now(): number
}

/** Time for the consent page and for the login at the provider. */
export const loginLifetimeMs = 10 * 60_000
const maxStateLength = 1_024
const maxScopeLength = 1_024
const challengeForm = /^[A-Za-z0-9_-]{43}$/
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e ]*$/

type VerifiedClient = { kind: 'verified'; client: Client; redirectUri: string; target: RedirectTarget }

/**
 * Authorization endpoint (RFC 6749 section 4.1.1, OAuth 2.1): validates a request and shows the consent page.
 * Errors are sent to the redirect URI only after it is verified as one of the client, and to a website only
 * through a link.
 */
export function compileAuthorize(options: AuthorizeOptions) {
  const { urls, clients, cookie, sealed, now } = options

  function consent(exchange: Exchange, parameters: Parameters, verified: VerifiedClient): Reply {
    const { headers } = exchange.facts.request
    const browser = cookie.readOrCreate(headers)
    const scopes = allowedScopes(options.scopes, parameters.get('scope'))
    const request: AuthorizationRequest = {
      client: clientDigest(verified.client.id),
      redirectUri: verified.redirectUri,
      state: parameters.get('state'),
      challenge: parameters.get('code_challenge') ?? '',
      scopes,
      browser: browserDigest(browser),
    }
    return consentPage({
      client: verified.client,
      target: verified.target,
      scopes,
      resource: urls.resource,
      action: urls.endpoint('consent'),
      request: sealed.seal('request', writeRequest(request), now() + loginLifetimeMs),
      cookie: cookie.setCookie(browser),
    })
  }

  return async (exchange: Exchange): Promise<Reply> => {
    const parameters = readParameters(exchange.facts.request.query)
    const verified = await verifyClient(clients, exchange, parameters)
    if (verified.kind === 'refused') return errorPage(exchange, verified.status, verified.reason)
    const problem = problemOf(parameters, urls.resource)
    if (problem === undefined) return consent(exchange, parameters, verified)
    exchange.log.refusedBy = `mcp-authentication: ${problem.error}`
    const state = parameters.repeated.has('state') ? undefined : parameters.get('state')
    const { error, description } = problem
    const { redirectUri, target } = verified
    const location = redirectWith(redirectUri, {
      error,
      error_description: description,
      state,
      iss: urls.issuer,
    })
    // RFC 9700 section 4.11.2: any website can register, so the user decides whether to follow the redirect.
    return target.kind === 'web' && !options.trustsRedirects
      ? returnPage(description, target, location)
      : browserRedirect(location)
  }
}

/** Verifies client id and redirect URI. Until then, errors must not be sent to the redirect URI. */
async function verifyClient(
  clients: Clients,
  exchange: Exchange,
  { get, repeated }: Parameters,
): Promise<VerifiedClient | { kind: 'refused'; status: number; reason: string }> {
  const id = get('client_id')
  const redirectUri = get('redirect_uri')
  if (id === undefined || redirectUri === undefined || repeated.has('client_id'))
    return { kind: 'refused', status: 400, reason: 'client_id and redirect_uri are required, once each' }
  const found = await clients.find(id, exchange.facts.source.address)
  if (found.kind === 'unavailable')
    return { kind: 'refused', status: 503, reason: 'too many concurrent sign-ins' }
  if (found.kind === 'unknown')
    return { kind: 'refused', status: 400, reason: `client not accepted: ${found.reason}` }
  const target = readRedirectTarget(redirectUri)
  const isRegistered = isRegisteredRedirect(found.client.redirectUris, redirectUri)
  if (target === undefined || !isRegistered || repeated.has('redirect_uri'))
    return { kind: 'refused', status: 400, reason: 'redirect_uri is not one of this client' }
  return { kind: 'verified', client: found.client, redirectUri, target }
}

type Problem = { error: OAuthError; description: string }

function problemOf(parameters: Parameters, resource: string): Problem | undefined {
  const { get, repeated } = parameters
  if (repeated.has('resource')) return problem('invalid_target', 'resource must not be repeated')
  if (repeated.size > 0) return problem('invalid_request', 'duplicate parameter')
  if (get('request') !== undefined) return problem('request_not_supported', 'request is not supported')
  if (get('request_uri') !== undefined)
    return problem('request_uri_not_supported', 'request_uri is not supported')
  if (get('response_type') !== 'code')
    return problem('unsupported_response_type', 'response_type must be code')
  if ((get('response_mode') ?? 'query') !== 'query')
    return problem('invalid_request', 'response_mode must be query')
  // A missing method means `plain` (RFC 7636 section 4.3), which a leaked request would defeat.
  if (get('code_challenge_method') !== 'S256')
    return problem('invalid_request', 'code_challenge_method must be S256')
  if (!challengeForm.test(get('code_challenge') ?? ''))
    return problem('invalid_request', 'code_challenge must be a SHA-256 digest in base64url')
  if ((get('state') ?? '').length > maxStateLength)
    return problem('invalid_request', `state is longer than ${maxStateLength} characters`)
  const scope = get('scope') ?? ''
  if (scope.length > maxScopeLength || !scopeForm.test(scope))
    return problem('invalid_scope', 'scope is malformed or too long')
  if (!isResource(get('resource'), resource)) return problem('invalid_target', 'unknown resource')
  // Consent is always required.
  return get('prompt') === 'none' ? problem('interaction_required', 'consent is required') : undefined
}

function problem(error: OAuthError, description: string): Problem {
  return { error, description }
}

/** Requested scopes that the endpoint offers; all of them if none is requested. */
function allowedScopes(offered: readonly string[], requested: string | undefined): readonly string[] {
  const wanted = scopesOf(requested)
  if (wanted.length === 0) return offered
  return offered.length === 0 ? wanted : wanted.filter((scope) => offered.includes(scope))
}
