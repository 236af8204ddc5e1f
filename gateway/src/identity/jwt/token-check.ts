import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { AuthenticationCheck, AuthenticationOutcome } from '../authentication.ts'
import type { CredentialLocation } from '../credential-location.ts'
import type { TokenVerifier, Verdict } from './token-verifier.ts'

export type TokenCheckOptions = {
  /** Who passes: `strict` only valid tokens, `optional` also requests without a token, `permissive` everyone. */
  mode: 'strict' | 'optional' | 'permissive'
  location: CredentialLocation
  verifier: TokenVerifier
  /** The reply where a token is refused for `reason`, or missing. The reason is for the log. */
  unauthorized(exchange: Exchange, reason: string | undefined): Reply
  /** The reply while there are no keys to check a token with. */
  unavailable(exchange: Exchange): Reply
}

/**
 * Finds out by token who asks, and writes its claims to `facts.jwt`, unless a check before it has. A token that is not
 * valid stays where it is: what passes with it is a request that nobody vouches for.
 */
export function compileTokenCheck(options: TokenCheckOptions): AuthenticationCheck {
  const { mode, location, verifier, unauthorized, unavailable } = options
  const locations = [location]

  function settle(exchange: Exchange, credential: string, verdict: Verdict): AuthenticationOutcome {
    if (verdict.kind === 'valid') {
      exchange.facts.jwt ??= verdict.claims
      return { kind: 'accepted', credential, locations }
    }
    if (mode === 'permissive') return undefined
    const reply = verdict.kind === 'invalid' ? unauthorized(exchange, verdict.reason) : unavailable(exchange)
    return { kind: 'refused', reply }
  }

  return (exchange) => {
    const token = location.read(exchange.facts)
    if (token === undefined) {
      return mode === 'strict' ? { kind: 'refused', reply: unauthorized(exchange, undefined) } : undefined
    }
    const verdict = verifier.verify(token)
    if (verdict instanceof Promise) return verdict.then((settled) => settle(exchange, token, settled))
    return settle(exchange, token, verdict)
  }
}
