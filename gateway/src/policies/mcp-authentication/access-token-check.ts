import type { AuthenticationCheck } from '../../identity/authentication.ts'
import { compileTokenCheck, type TokenCheckOptions } from '../../identity/jwt/jwt-authentication.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { GatewayUrls } from './discovery/gateway-urls.ts'
import { jsonReply } from './json-reply.ts'

export type AccessTokenCheckOptions = Pick<TokenCheckOptions, 'mode' | 'location' | 'verifier'> & {
  urls: GatewayUrls
  /** Scopes that clients should request. */
  scopes: readonly string[]
}

/**
 * Compiles the check of access tokens. The gateway is the audience of the token: it is not forwarded to
 * targets (MCP 2025-11-25, "Access token privilege restriction").
 */
export function compileAccessTokenCheck({
  mode,
  location,
  verifier,
  ...challenge
}: AccessTokenCheckOptions): AuthenticationCheck {
  return compileTokenCheck({
    mode,
    location,
    verifier,
    unauthorized: compileUnauthorized(challenge),
    unavailable: keysUnavailable,
  })
}

type Challenge = Pick<AccessTokenCheckOptions, 'urls' | 'scopes'>

/**
 * Creates the 401 reply. `reason` is undefined if no token was sent. The body is the same for every reason.
 */
function compileUnauthorized({ urls, scopes }: Challenge) {
  const scope = scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
  return (exchange: Exchange, reason: string | undefined): Reply => {
    exchange.log.refusedBy = `mcp-authentication: ${reason ?? 'no token'}`
    const metadata = urls.resourceMetadata(exchange.facts.request)
    const error = reason === undefined ? '' : ', error="invalid_token"'
    return jsonReply(
      401,
      { error: 'unauthorized', error_description: 'JWT token required' },
      { 'www-authenticate': `Bearer resource_metadata="${metadata}"${scope}${error}` },
    )
  }
}

/** Not a 401: clients would discard valid tokens while the provider is down. */
function keysUnavailable(exchange: Exchange): Reply {
  exchange.log.refusedBy = 'mcp-authentication: no keys yet'
  return jsonReply(
    503,
    {
      error: 'temporarily_unavailable',
      error_description: 'the keys of the identity provider are not available yet',
    },
    { 'retry-after': '1' },
  )
}
