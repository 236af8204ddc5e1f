import { isDeepStrictEqual } from 'node:util'

type Claims = Readonly<Record<string, unknown>>

/**
 * Whether the claim `may_act` of the subject permits the actor (RFC 8693 section 4.4): the claims of the
 * actor have each value of it, or one value of each list. Signatures are not verified: the token endpoint
 * verifies both tokens.
 */
export function mayAct(subject: string, actor: string): boolean {
  const permitted = claimsOf(subject)?.['may_act']
  const claims = claimsOf(actor)
  if (!isClaims(permitted) || claims === undefined) return false
  const expected = Object.entries(permitted)
  return (
    expected.length > 0 &&
    expected.every(([name, value]) => Object.hasOwn(claims, name) && hasValue(claims[name], value))
  )
}

function hasValue(actual: unknown, expected: unknown): boolean {
  if (Array.isArray(expected)) return expected.some((one) => isDeepStrictEqual(actual, one))
  return isDeepStrictEqual(actual, expected)
}

/** The claims of a JWT; undefined for other tokens. */
function claimsOf(token: string): Claims | undefined {
  const parts = token.split('.', 4)
  const payload = parts[1]
  if (parts.length !== 3 || payload === undefined) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return isClaims(claims) ? claims : undefined
  } catch {
    return undefined
  }
}

function isClaims(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
