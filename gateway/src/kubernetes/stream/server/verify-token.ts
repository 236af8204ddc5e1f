import { createHash } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'

/** Service account of a verified token. */
export type TokenIdentity = {
  readonly namespace: string
  readonly serviceAccount: string
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number
}

export type TokenVerdict =
  | ({ readonly kind: 'verified' } & TokenIdentity)
  | { readonly kind: 'refused'; readonly reason: string }
  /** The API server does not respond. */
  | { readonly kind: 'unavailable'; readonly reason: string }

export type VerifyToken = (token: string) => Promise<TokenVerdict>

export type CachedVerificationOptions = {
  readonly verify: VerifyToken
  readonly clock: Pick<Clock, 'now'>
}

/** A revoked token passes until then at most. */
const verifiedMs = 60_000
const refusedMs = 5_000
const maxCached = 4_000
const maxPending = 64

/**
 * Caches verdicts by the hash of the token for a short time: a reconnection costs one TokenReview for each
 * proxy, its acknowledgements none. At most 64 reviews run at a time.
 */
export function createCachedVerification({ verify, clock }: CachedVerificationOptions): VerifyToken {
  type Verdicts = Map<string, { verdict: TokenVerdict; until: number }>
  /** Apart from the others: any number of invalid tokens must not remove the valid ones. */
  const verified: Verdicts = new Map()
  const refused: Verdicts = new Map()
  const pending = new Map<string, Promise<TokenVerdict>>()

  async function review(hash: string, token: string): Promise<TokenVerdict> {
    try {
      const verdict = await verify(token)
      const now = clock.now()
      if (verdict.kind === 'verified' && verdict.expiresAt <= now) return expired
      const until = untilOf(verdict, now)
      if (until !== undefined) {
        const cached = verdict.kind === 'verified' ? verified : refused
        verified.delete(hash)
        refused.delete(hash)
        cached.set(hash, { verdict, until })
        const [oldest] = cached.keys()
        if (cached.size > maxCached && oldest !== undefined) cached.delete(oldest)
      }
      return verdict
    } finally {
      pending.delete(hash)
    }
  }

  return async (token) => {
    const hash = createHash('sha256').update(token).digest('base64url')
    const known = verified.get(hash) ?? refused.get(hash)
    if (known !== undefined && known.until > clock.now()) return known.verdict
    const running = pending.get(hash)
    if (running !== undefined) return running
    if (pending.size >= maxPending) return { kind: 'unavailable', reason: 'too many token reviews' }
    const started = review(hash, token)
    pending.set(hash, started)
    return started
  }
}

const expired: TokenVerdict = { kind: 'refused', reason: 'the token has expired' }

function untilOf(verdict: TokenVerdict, now: number): number | undefined {
  if (verdict.kind === 'unavailable') return undefined
  if (verdict.kind === 'refused') return now + refusedMs
  return Math.min(now + verifiedMs, verdict.expiresAt)
}
