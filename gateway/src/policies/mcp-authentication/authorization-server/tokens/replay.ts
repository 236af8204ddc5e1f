import type { Clock } from '../../../../lib/clock.ts'
import { createLru } from '../../../../lib/lru.ts'

/** Values that may be used once, for as long as they are remembered: the least recently used ones are forgotten first. */
export type ReplayCache = {
  /** Whether this is the first use. */
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

/** Refresh tokens that follow from one login: a family. Each rotation makes the next generation. */
export type TokenFamilies<T> = {
  /**
   * Rotates a refresh token once. The same token again, during the rotation and for 10 s after it, gets the same result:
   * clients refresh in parallel, and repeat a request whose answer was lost. Later, the token counts as stolen (RFC 9700
   * section 4.14.2): either its owner or a thief uses it the second time, so both lose the family.
   */
  rotate(token: FamilyToken, work: () => Promise<Rotated<T>>): Promise<Rotation<T>>
  revoke(family: string): void
  isRevoked(family: string): boolean
}

export type FamilyToken = { family: string; generation: number }
/** `isUsed`: the token is used up, and not to be tried again. */
export type Rotated<T> = { result: T; isUsed: boolean }
export type Rotation<T> = { kind: 'rotated'; result: T } | { kind: 'refused'; reason: string }

/** `used`: highest generation used. */
type Family = { isRevoked: boolean; used: number }
/** `until`: infinite while the rotation is under way. */
type Rotating<T> = { generation: number; result: Promise<T>; until: number }

const repeatMs = 10_000
/** Results hold whole answers, so fewer of them are remembered than families. */
const maxResults = 1_000

/** Remembers the most recently used families. One that is not remembered counts as unused. */
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

  async function begin(
    { family: name, generation }: FamilyToken,
    work: () => Promise<Rotated<T>>,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const latest = { generation, result: promise, until: Number.POSITIVE_INFINITY }
    results.set(name, latest)
    // A failure reaches the caller below; it must not count as unhandled where no second request waits.
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
        return { kind: 'refused', reason: 'was used before' }
      }
      if (latest?.until === Number.POSITIVE_INFINITY) return { kind: 'refused', reason: 'is being rotated' }
      return { kind: 'rotated', result: await begin(token, work) }
    },
    revoke,
    isRevoked: (name) => revokedSome && families.get(name)?.isRevoked === true,
  }
}
