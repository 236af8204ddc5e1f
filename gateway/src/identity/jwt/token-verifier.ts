import { hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose'
import type { Clock } from '../../lib/clock.ts'
import { exactObject } from '../../lib/json/exact.ts'
import { type ExactJsonObject, isJsonObject } from '../../lib/json/json.ts'
import { createLru } from '../../lib/lru.ts'
import type { KeySet, SigningKey } from './key-set.ts'
import type { KeySource } from './key-source.ts'

/** Result of token verification. `reason` is for the log; clients never receive it. */
export type Verdict =
  /** Claims, with exact integers. */
  | { kind: 'valid'; claims: ExactJsonObject }
  | { kind: 'invalid'; reason: string }
  /** No keys are available. */
  | { kind: 'unavailable' }

export type TokenRules = {
  issuer: string
  /** The token must have one of them; undefined accepts any audience. */
  audiences: readonly string[] | undefined
  requiredClaims: readonly string[]
}

export type TokenVerifier = { verify(token: string): Verdict | Promise<Verdict> }

type CachedToken = {
  claims: ExactJsonObject
  /** Milliseconds since the epoch. */
  usableUntil: number
  /** Key set of the verification; another one requires verifying again. */
  keys: KeySet
}

const maxTokenLength = 16 * 1024
const maxCachedTokens = 5_000
/** Cache lifetime of a token without `exp`. */
const maxCachedMs = 5 * 60_000
const leewaySeconds = 60
const compactForm = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/**
 * Creates a verifier of signed tokens (RFC 7519): signature by a key and an algorithm of that key, `iss`,
 * `aud`, `exp` and `nbf` with one minute of leeway, and required claims. Verified tokens are cached by their
 * SHA-256 digest until `exp`. Owner of jose.
 */
export function createTokenVerifier(source: KeySource, rules: TokenRules, clock: Clock): TokenVerifier {
  const verified = createLru<string, CachedToken>(maxCachedTokens)

  function cachedToken(digest: string, keys: KeySet): CachedToken | undefined {
    const known = verified.get(digest)
    if (known === undefined) return undefined
    if (known.keys === keys && clock.now() < known.usableUntil) return known
    verified.delete(digest)
    return undefined
  }

  async function verifyAnew(token: string, digest: string, keys: KeySet | undefined): Promise<Verdict> {
    const header = headerOf(token)
    if (header === undefined) return invalid('malformed')
    const set = await keysFor(header, keys, { source, mayRenew: () => issuerOf(token) === rules.issuer })
    if (set === undefined) return { kind: 'unavailable' }
    const candidates = set.find(header.keyId, header.algorithm)
    const verdict = await verifyWith(token, candidates, rules, clock.now())
    if (verdict.kind === 'valid') {
      const usableUntil = expiryMs(verdict.claims) ?? clock.now() + maxCachedMs
      verified.set(digest, { claims: verdict.claims, usableUntil, keys: set })
    }
    return verdict
  }

  return {
    verify(token) {
      // Before hashing, which costs time in proportion to the length.
      if (token.length > maxTokenLength) return invalid('too long')
      const digest = hash('sha256', token, 'base64')
      const keys = source.current()
      if (keys === undefined) return verifyAnew(token, digest, undefined)
      if (keys instanceof Promise) return keys.then((set) => verifyAnew(token, digest, set))
      const known = cachedToken(digest, keys)
      if (known !== undefined) return { kind: 'valid', claims: known.claims }
      return verifyAnew(token, digest, keys)
    },
  }
}

/**
 * Selects the verifier by the token's `iss` claim. A forged `iss` fails verification with that issuer's keys.
 */
export function verifierByIssuer(verifiers: ReadonlyMap<string, TokenVerifier>): TokenVerifier {
  return {
    verify(token) {
      if (token.length > maxTokenLength) return invalid('too long')
      const issuer = issuerOf(token)
      if (issuer === undefined) return invalid('malformed')
      return verifiers.get(issuer)?.verify(token) ?? invalid('unknown issuer')
    },
  }
}

function issuerOf(token: string): string | undefined {
  if (!compactForm.test(token)) return undefined
  try {
    const { iss } = decodeJwt(token)
    return typeof iss === 'string' ? iss : undefined
  } catch {
    return undefined
  }
}

type TokenHeader = { algorithm: string; keyId: string | undefined }

function headerOf(token: string): TokenHeader | undefined {
  if (!compactForm.test(token)) return undefined
  try {
    const { alg, kid } = decodeProtectedHeader(token)
    if (typeof alg !== 'string' || (kid !== undefined && typeof kid !== 'string')) return undefined
    return { algorithm: alg, keyId: kid }
  } catch {
    return undefined
  }
}

type Refetch = { source: KeySource; mayRenew(): boolean }

/** Returns the current keys, or newer ones if the token has an unknown key id and the expected issuer. */
async function keysFor(
  { keyId, algorithm }: TokenHeader,
  keys: KeySet | undefined,
  { source, mayRenew }: Refetch,
): Promise<KeySet | undefined> {
  if (keys === undefined || keyId === undefined || keys.find(keyId, algorithm).length > 0) return keys
  return mayRenew() ? source.refetch(keyId) : keys
}

async function verifyWith(
  token: string,
  candidates: readonly SigningKey[],
  { issuer, audiences, requiredClaims }: TokenRules,
  now: number,
): Promise<Verdict> {
  let verdict: Verdict = invalid('unknown key')
  for (const { key, algorithms } of candidates) {
    verdict = await jwtVerify(token, key, {
      algorithms: [...algorithms],
      issuer,
      ...(audiences === undefined ? {} : { audience: [...audiences] }),
      requiredClaims: [...requiredClaims],
      clockTolerance: leewaySeconds,
      currentDate: new Date(now),
    }).then(({ payload }) => valid(token, payload), failureVerdict)
    if (verdict.kind === 'valid') return verdict
  }
  return verdict
}

function valid(token: string, payload: unknown): Verdict {
  if (!isJsonObject(payload)) return invalid('malformed')
  const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
  return { kind: 'valid', claims: exactObject({ kind: 'object', text, value: payload }) }
}

/** Maps every failure of verification to an invalid verdict. */
function failureVerdict(error: unknown): Verdict {
  if (error instanceof errors.JWTExpired) return invalid('expired')
  if (error instanceof errors.JWTClaimValidationFailed)
    return invalid(`claim ${claimNames.get(error.claim) ?? ''}`)
  if (error instanceof errors.JWSSignatureVerificationFailed) return invalid('wrong signature')
  return invalid('malformed')
}

const claimNames: ReadonlyMap<string, string> = new Map(
  ['iss', 'aud', 'exp', 'nbf', 'iat', 'sub'].map((claim) => [claim, claim]),
)

function invalid(reason: string): Verdict {
  return { kind: 'invalid', reason }
}

function expiryMs({ exp }: ExactJsonObject): number | undefined {
  return typeof exp === 'number' ? exp * 1000 : undefined
}
