import type { TokenVerifier, Verdict } from '../../../../identity/jwt/token-verifier.ts'
import type { ExactJsonObject } from '../../../../lib/json/json.ts'
import type { ProviderTokens } from './client.ts'

/** Verified claims of a user, with their expiry. */
export type ReadClaims =
  | { kind: 'claims'; claims: ExactJsonObject; expiresAt: number }
  | { kind: 'refused'; reason: string }
  | { kind: 'unavailable' }

export type Expected = {
  /** Nonce of the login; undefined for a refresh, where the provider may omit it. */
  nonce?: string | undefined
  /** Subject of the previous login; a refresh must not change it (OpenID Connect Core section 12.2). */
  subject?: string | undefined
}

export type ProviderClaims = (tokens: ProviderTokens, expected: Expected) => Promise<ReadClaims>

export type ProviderClaimsOptions = {
  source: 'accessToken' | 'idToken'
  verifier: TokenVerifier
  now(): number
}

/** Lifetime of tokens without an expiry, and maximum lifetime of tokens of the gateway. */
const defaultLifetimeMs = 5 * 60_000
const maxLifetimeMs = 3_600_000

/** Compiles the reader of claims from the provider's verified access token or ID token. */
export function compileProviderClaims({ source, verifier, now }: ProviderClaimsOptions): ProviderClaims {
  function lifetimeEnd(claims: ExactJsonObject, { expiresIn }: ProviderTokens): number {
    const { exp } = claims
    const stated = expiresIn === undefined ? undefined : now() + expiresIn * 1000
    // An ID token proves the login only: its lifetime does not limit access.
    const ofToken = typeof exp === 'number' && source === 'accessToken' ? exp * 1000 : undefined
    const ends = [stated, ofToken].filter((end) => end !== undefined)
    return Math.min(now() + (ends.length === 0 ? defaultLifetimeMs : maxLifetimeMs), ...ends)
  }

  return async (tokens, expected) => {
    const token = source === 'idToken' ? tokens.idToken : tokens.accessToken
    if (token === undefined) return { kind: 'refused', reason: 'the provider sent no id_token' }
    const verdict: Verdict = await verifier.verify(token)
    if (verdict.kind === 'unavailable') return verdict
    if (verdict.kind === 'invalid') return { kind: 'refused', reason: verdict.reason }
    const { claims } = verdict
    if (source === 'idToken' && expected.nonce !== undefined && claims['nonce'] !== expected.nonce)
      return { kind: 'refused', reason: 'claim nonce' }
    if (expected.subject !== undefined && claims['sub'] !== expected.subject)
      return { kind: 'refused', reason: 'claim sub' }
    return { kind: 'claims', claims, expiresAt: lifetimeEnd(claims, tokens) }
  }
}
