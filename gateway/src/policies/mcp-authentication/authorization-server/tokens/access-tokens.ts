import { hash } from 'node:crypto'
import type { TokenVerifier, Verdict } from '../../../../identity/jwt/token-verifier.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { exactObject, exactText } from '../../../../lib/json/exact.ts'
import { type ExactJsonObject, isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { createLru } from '../../../../lib/lru.ts'
import type { SealedValues } from './sealed-values.ts'

/** Opaque access tokens of the gateway: sealed claims of the provider. */
export type AccessTokens = TokenVerifier & {
  /** Issues a token with the claims of a login, valid until `expiresAt` (milliseconds since the epoch). */
  issue(claims: ExactJsonObject, family: string, expiresAt: number): string
}

type UnsealedToken = { claims: ExactJsonObject; family: string; expiresAt: number }

const maxTokenLength = 16 * 1024
const maxCachedTokens = 5_000

export function createAccessTokens(
  sealed: SealedValues,
  families: { isRevoked(family: string): boolean },
  clock: Clock,
): AccessTokens {
  const cached = createLru<string, UnsealedToken>(maxCachedTokens)

  function open(token: string): UnsealedToken | undefined {
    const digest = hash('sha256', token, 'base64')
    const known = cached.get(digest)
    if (known !== undefined) return known
    const opened = readUnsealed(sealed.unseal('access', token))
    if (opened !== undefined) cached.set(digest, opened)
    return opened
  }

  return {
    issue(claims, family, expiresAt) {
      return sealed.seal('access', { c: exactText(claims), f: family, t: expiresAt }, expiresAt)
    },
    verify(token): Verdict {
      if (token.length > maxTokenLength) return { kind: 'invalid', reason: 'too long' }
      const opened = open(token)
      if (opened === undefined) return { kind: 'invalid', reason: 'unknown or expired' }
      if (opened.expiresAt <= clock.now()) return { kind: 'invalid', reason: 'expired' }
      if (families.isRevoked(opened.family)) return { kind: 'invalid', reason: 'revoked' }
      return { kind: 'valid', claims: opened.claims }
    },
  }
}

function readUnsealed(value: JsonObject | undefined): UnsealedToken | undefined {
  if (value === undefined) return undefined
  const { c: text, f: family, t: expiresAt } = value
  if (typeof text !== 'string' || typeof family !== 'string' || typeof expiresAt !== 'number')
    return undefined
  const claims: unknown = JSON.parse(text)
  if (!isJsonObject(claims)) return undefined
  return { claims: exactObject({ kind: 'object', text, value: claims }), family, expiresAt }
}
