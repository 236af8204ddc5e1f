import type { TokenVerifier } from '../../identity/jwt/token-verifier.ts'
import type { ExactJsonObject } from '../../lib/json/json.ts'
import type { LoginProvider, LoginTokens, ProviderResult } from './provider.ts'

export type UserClaims = { claims: ExactJsonObject; idToken: string | undefined }

/** Claims of the session before a refresh. */
export type PreviousClaims = { subject: string; claims: ExactJsonObject; idToken: string | undefined }

export type ReadUserClaims = (
  tokens: LoginTokens,
  previous: PreviousClaims | undefined,
) => Promise<ProviderResult<UserClaims>>

export type UserClaimsOptions = {
  verifier: TokenVerifier
  provider: Pick<LoginProvider, 'userinfo'>
  /** Whether the claims of the UserInfo endpoint are added. */
  userinfo: boolean
  /** Names of the claims to keep; undefined keeps all. */
  names: readonly string[] | undefined
}

const alwaysKept = ['iss', 'sub', 'aud']
/** Claims about the token, not about the user. */
const tokenClaims = ['at_hash', 'c_hash', 's_hash', 'nonce']

export function isUserClaim(name: string): boolean {
  return !tokenClaims.includes(name)
}

/**
 * Compiles the reader of claims: those of the verified ID token, completed by the UserInfo endpoint. After a
 * refresh without an ID token, the previous ones remain (OpenID Connect Core section 12.2).
 */
export function compileUserClaims({
  verifier,
  provider,
  userinfo,
  names,
}: UserClaimsOptions): ReadUserClaims {
  const kept = names && new Set([...names, ...alwaysKept])

  function selected(claims: ExactJsonObject): ExactJsonObject {
    return Object.fromEntries(Object.entries(claims).filter(([name]) => kept?.has(name) ?? isUserClaim(name)))
  }

  async function identity(
    { idToken }: LoginTokens,
    previous: PreviousClaims | undefined,
  ): Promise<ProviderResult<ExactJsonObject>> {
    if (idToken === undefined)
      return previous === undefined
        ? { kind: 'refused', reason: 'the provider sent no ID token' }
        : { kind: 'found', value: previous.claims }
    const verdict = await verifier.verify(idToken)
    if (verdict.kind === 'unavailable')
      return { kind: 'unavailable', reason: 'the keys of the provider are not available' }
    if (verdict.kind === 'invalid')
      return { kind: 'refused', reason: `the ID token of the provider is not valid (${verdict.reason})` }
    return { kind: 'found', value: verdict.claims }
  }

  return async (tokens, previous) => {
    const base = await identity(tokens, previous)
    if (base.kind !== 'found') return base
    const { sub } = base.value
    if (typeof sub !== 'string') return { kind: 'refused', reason: 'the ID token has no sub' }
    if (previous !== undefined && previous.subject !== sub)
      return { kind: 'refused', reason: 'the provider changed the user' }
    const more = userinfo ? await provider.userinfo(tokens.accessToken, sub) : nothing
    if (more.kind !== 'found') return more
    const isSigned = tokens.idToken !== undefined
    const claims = isSigned ? { ...more.value, ...base.value } : { ...base.value, ...more.value }
    return {
      kind: 'found',
      value: {
        claims: selected(claims),
        // It contains all claims.
        idToken: kept === undefined ? (tokens.idToken ?? previous?.idToken) : undefined,
      },
    }
  }
}

const nothing: ProviderResult<ExactJsonObject> = { kind: 'found', value: {} }
