import { hash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { createLru } from '../../lib/lru.ts'

/** Rate limit of key set fetches for tokens with unknown key ids. */
export type RefetchLimit = {
  /** Counts a fetch for this key id; false if the limit is reached. */
  tryAcquire(keyId: string): boolean
  /** Records a key id after a fetch, so that it causes no further fetch for a while. */
  recordUnknown(keyId: string): void
}

/** Burst of fetches; afterwards one per `refillMs`. */
const burst = 5
const refillMs = 10_000
/** Time during which a recorded key id causes no fetch. */
const unknownKeyMs = 30_000
const maxUnknownKeys = 1_000

/**
 * Creates a token bucket over all key ids, with a bounded cache of recorded ids. Repeated forged ids cost one
 * fetch each, so a rotated key is still fetched immediately. With random ids the bucket limits the load on
 * the provider, and a rotation takes effect after at most `refillMs`.
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

/** Digest of an id. Clients control the length of ids. */
function digestOf(keyId: string): string {
  return hash('sha256', keyId, 'base64')
}
