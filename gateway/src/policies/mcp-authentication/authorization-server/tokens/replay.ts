import type { Clock } from '../../../../lib/clock.ts'
import { createLru } from '../../../../lib/lru.ts'

/** Replay cache of single-use values. It evicts the least recently used ones first. */
export type ReplayCache = {
  /** Records a use; false if the value was used before. */
  tryUse(id: string): boolean
}

export function createReplayCache(capacity: number): ReplayCache {
  const used = createLru<string, true>(capacity)
  return {
    tryUse(id) {
      if (used.get(id) !== undefined) return false
      used.set(id, true)
      return true
    },
  }
}

/** Refresh token families: all refresh tokens of one login. Each rotation creates the next generation. */
export type TokenFamilies<T> = {
  /**
   * Rotates a refresh token once. Reuse during the rotation and for 10 s after it returns the same result:
   * clients refresh in parallel, and repeat a request after a lost response. Later reuse revokes the family,
   * because the token was stolen (RFC 9700 section 4.14.2): either its owner or an attacker uses it the
   * second time.
   */
  rotate(token: FamilyToken, work: () => Promise<Rotated<T>>): Promise<Rotation<T>>
  revoke(family: string): void
  isRevoked(family: string): boolean
}

export type FamilyToken = { family: string; generation: number }
/** Result of a rotation. `isUsed`: the token is spent and must not be used again. */
export type Rotated<T> = { result: T; isUsed: boolean }
export type Rotation<T> = { kind: 'rotated'; result: T } | { kind: 'refused'; reason: string }

/** `used`: highest used generation. */
type Family = { isRevoked: boolean; used: number }
/** `until`: infinite during the rotation. */
type Rotating<T> = { generation: number; result: Promise<T>; until: number }

const repeatMs = 10_000
/** Limit of cached results, lower than that of families because results are whole responses. */
const maxResults = 1_000

/** Creates a store of the most recently used families. Evicted families count as unused. */
export function createTokenFamilies<T>(capacity: number, clock: Pick<Clock, 'monotonic'>): TokenFamilies<T> {
  const families = createLru<string, Family>(capacity)
  const results = createLru<string, Rotating<T>>(maxResults)
  let revokedSome = false

  function familyOf(name: string): Family {
    const known = families.get(name)
    if (known !== undefined) return known
    const made: Family = { isRevoked: false, used: -1 }
    families.set(name, made)
    return made
  }

  function revoke(name: string) {
    revokedSome = true
    familyOf(name).isRevoked = true
    results.delete(name)
  }

  async function startRotation(
    { family: name, generation }: FamilyToken,
    work: () => Promise<Rotated<T>>,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const latest = { generation, result: promise, until: Number.POSITIVE_INFINITY }
    results.set(name, latest)
    // The caller below receives the failure; without a second request the promise must not count as
    // unhandled.
    promise.catch(() => {})
    try {
      const { result, isUsed } = await work()
      if (isUsed) {
        familyOf(name).used = generation
        latest.until = clock.monotonic() + repeatMs
      } else results.delete(name)
      resolve(result)
      return result
    } catch (error) {
      results.delete(name)
      reject(error)
      throw error
    }
  }

  return {
    async rotate(token, work) {
      const { family: name, generation } = token
      const family = familyOf(name)
      if (family.isRevoked) return { kind: 'refused', reason: 'was revoked' }
      const latest = results.get(name)
      if (latest?.generation === generation && clock.monotonic() < latest.until)
        return { kind: 'rotated', result: await latest.result }
      if (generation <= family.used) {
        revoke(name)
        return { kind: 'refused', reason: 'was already used' }
      }
      if (latest?.until === Number.POSITIVE_INFINITY) return { kind: 'refused', reason: 'is in rotation' }
      return { kind: 'rotated', result: await startRotation(token, work) }
    },
    revoke,
    isRevoked: (name) => revokedSome && families.get(name)?.isRevoked === true,
  }
}
