import { ApiError } from '../../client/requests/api-error.ts'
import { tokenAudience } from '../token-audience.ts'
import type { TokenVerdict, VerifyToken } from './verify-token.ts'

/**
 * Sends a `TokenReview` (`authentication.k8s.io/v1`) to the API server and returns the response. Rejects if
 * the API server does not create it.
 */
export type CreateTokenReview = (review: object) => Promise<unknown>

/**
 * Verifies projected service account tokens with TokenReview. A token without expiry or of another audience
 * is refused.
 */
export function createTokenReviews(create: CreateTokenReview): VerifyToken {
  return async (token) => {
    const expiresAt = expiryOf(token)
    if (expiresAt === undefined) return { kind: 'refused', reason: 'not a service account token' }
    try {
      const response = await create({
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, audiences: [tokenAudience] },
      })
      return verdictOf(response, expiresAt)
    } catch (error) {
      // Without its message, which may contain the request, and with it the token.
      const status = error instanceof ApiError && error.status > 0 ? `: status ${error.status}` : ''
      return { kind: 'unavailable', reason: `the API server did not review the token${status}` }
    }
  }
}

function verdictOf(response: unknown, expiresAt: number): TokenVerdict {
  const status = member(response, 'status')
  const audiences = member(status, 'audiences')
  const username = member(member(status, 'user'), 'username')
  if (member(status, 'authenticated') !== true) return refused('not authenticated by the API server')
  if (!Array.isArray(audiences) || !audiences.includes(tokenAudience)) {
    return refused(`the audience of the token must be ${tokenAudience}`)
  }
  const found = typeof username === 'string' ? userPattern.exec(username)?.groups : undefined
  const { namespace, name } = found ?? {}
  if (namespace === undefined || name === undefined) return refused('not the token of a service account')
  return { kind: 'verified', namespace, serviceAccount: name, expiresAt }
}

const userPattern = /^system:serviceaccount:(?<namespace>[^:]+):(?<name>[^:]+)$/

/** Claim `exp` in milliseconds. The API server verifies the signature. */
function expiryOf(token: string): number | undefined {
  const [, claims = ''] = token.split('.')
  try {
    const exp = member(JSON.parse(Buffer.from(claims, 'base64url').toString()), 'exp')
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1_000 : undefined
  } catch {
    return undefined
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return Reflect.get(value, name)
}

function refused(reason: string): TokenVerdict {
  return { kind: 'refused', reason }
}
