import { SecretText } from '../../cel/secret-text.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { CredentialLocation } from '../../upstream/credentials/credential-location.ts'
import type { AuthenticationCheck, AuthenticationOutcome } from '../authentication.ts'
import type { TokenVerifier, Verdict } from './token-verifier.ts'

export type TokenCheckOptions = {
  /**
   * Authentication mode: `strict` requires a valid token, `optional` also admits requests without one,
   * `permissive` all.
   */
  mode: 'strict' | 'optional' | 'permissive'
  location: CredentialLocation
  verifier: TokenVerifier
  /** Reply to a missing token (`reason` undefined) or an invalid token. The reason is for the log only. */
  unauthorized(exchange: Exchange, reason: string | undefined): Reply
  /** Reply while no keys are available. */
  unavailable(exchange: Exchange): Reply
}

/**
 * Compiles the check of a bearer token. Writes its claims to `facts.jwt`, unless an earlier check has. In
 * permissive mode an invalid token remains in the request, which then counts as unauthenticated.
 */
export function compileTokenCheck(options: TokenCheckOptions): AuthenticationCheck {
  const { mode, location, verifier, unauthorized, unavailable } = options
  const locations = [location]

  function settle(exchange: Exchange, credential: string, verdict: Verdict): AuthenticationOutcome {
    if (verdict.kind === 'valid') {
      if (exchange.facts.jwt === undefined) {
        exchange.facts.jwt = verdict.claims
        exchange.facts.token = new SecretText(credential)
        exchange.auth.token = credential
      }
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
