import { hash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { createLru } from '../../lib/lru.ts'

/** Limits of the fetches that tokens with unknown key ids cause. */
export type RefetchLimit = {
  /** Whether a fetch for this key id is allowed now; if so, it is counted. */
  tryAcquire(keyId: string): boolean
  /** Records that a fetch did not find the key id, or found it just now. */
  recordUnknown(keyId: string): void
}

/** Fetches that are allowed at once; then one per `refillMs`. */
const burst = 5
const refillMs = 10_000
/** A refused key id causes no fetch for this long. */
const unknownKeyMs = 30_000
const maxUnknownKeys = 1_000

/**
 * A token bucket over all key ids, and a bounded memory of refused ids. A client that repeats a few forged ids
 * spends one fetch on each, so a rotated key is still fetched at once. With random ids the bucket is what limits the load
 * on the provider, and a rotation is seen after `refillMs` at most.
 */
export function createRefetchLimit(clock: Pick<Clock, 'monotonic'>): RefetchLimit {
  const refusedAt = createLru<string, number>(maxUnknownKeys)
  let available = burst
  let filledAt = clock.monotonic()

  return {
    tryAcquire(keyId) {
      const now = clock.monotonic()
      const refused = refusedAt.get(digestOf(keyId))
      if (refused !== undefined && now < refused + unknownKeyMs) return false
      const refills = Math.floor((now - filledAt) / refillMs)
      if (refills > 0) {
        available = Math.min(burst, available + refills)
        filledAt += refills * refillMs
      }
      if (available === 0) return false
      available -= 1
      return true
    },
    recordUnknown: (keyId) => refusedAt.set(digestOf(keyId), clock.monotonic()),
  }
}

/** Ids come from clients and may be long; digests are not. */
function digestOf(keyId: string): string {
  return hash('sha256', keyId, 'base64')
}
