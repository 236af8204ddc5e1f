import type { Reply } from '../../net/send.ts'
import type { Location } from '../../pipeline/credential-location.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { TokenVerifier, Verdict } from '../../pipeline/jwt/token.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { Addresses } from './addresses.ts'
import { jsonReply } from './json-reply.ts'

export type AuthenticateOptions = {
  mode: 'strict' | 'optional' | 'permissive'
  location: Location
  verifier: TokenVerifier
  addresses: Addresses
  /** Scopes that clients should ask for. */
  scopes: readonly string[]
}

/**
 * Admits requests by access token, writes its claims to `facts.jwt`, and takes the token off the request: targets never
 * see it (MCP 2025-11-25, "Access token privilege restriction").
 */
export function compileAuthenticate(options: AuthenticateOptions): Policy {
  const { mode, location, verifier } = options
  const unauthorized = compileUnauthorized(options)

  function settle(exchange: Exchange, token: string, verdict: Verdict): Reply | undefined {
    if (verdict.kind === 'valid') {
      location.remove(exchange.facts, token)
      exchange.facts.jwt = verdict.claims
      return undefined
    }
    if (mode === 'permissive') return undefined
    if (verdict.kind === 'invalid') return unauthorized(exchange, verdict.reason)
    exchange.refusedBy = 'mcp-authentication: no keys yet'
    return noKeys()
  }

  return {
    name: 'mcp authentication',
    onRequest(exchange) {
      const token = location.read(exchange.facts)
      if (token === undefined) return mode === 'strict' ? unauthorized(exchange, undefined) : undefined
      const verdict = verifier.verify(token)
      if (verdict instanceof Promise) return verdict.then((settled) => settle(exchange, token, settled))
      return settle(exchange, token, verdict)
    },
  }
}

/** `reason` is why a token is refused, and undefined where there is none. The body says the same whatever it is. */
function compileUnauthorized({ addresses, scopes }: AuthenticateOptions) {
  const scope = scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
  return (exchange: Exchange, reason: string | undefined): Reply => {
    exchange.refusedBy = `mcp-authentication: ${reason ?? 'no token'}`
    const metadata = addresses.resourceMetadata(exchange.facts.request)
    const error = reason === undefined ? '' : ', error="invalid_token"'
    return jsonReply(
      401,
      { error: 'unauthorized', error_description: 'JWT token required' },
      { 'www-authenticate': `Bearer resource_metadata="${metadata}"${scope}${error}` },
    )
  }
}

/** Not a 401: that would make clients throw good tokens away while the provider is down. */
function noKeys(): Reply {
  return jsonReply(
    503,
    {
      error: 'temporarily_unavailable',
      error_description: 'the keys of the identity provider are not known yet',
    },
    { 'retry-after': '1' },
  )
}
