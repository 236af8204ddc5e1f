import type { Clock } from '../../lib/clock.ts'
import type { Memory } from '../../lib/planes/memory.ts'
import { createRecentRecords } from '../../lib/planes/recent-records.ts'
import type { FamilyToken, RotationResults } from './rotation-results.ts'

/**
 * Refresh token families: all refresh tokens of one login. Each rotation creates the next generation. All
 * data planes share the families of a name.
 */
export type TokenFamilies<T> = {
  /**
   * Rotates a refresh token once. Reuse during the rotation and for a time after it returns the same result:
   * clients refresh in parallel, and repeat a request after a lost response. Later reuse revokes the family,
   * because the token was stolen (RFC 9700 section 4.14.2): either its owner or an attacker uses it the
   * second time.
   */
  rotate(token: FamilyToken, work: () => Promise<Rotated<T>>): Promise<Rotation<T>>
  revoke(family: string): void
  isRevoked(family: string): boolean
}

/** Result of a rotation. `isUsed`: the token is spent and must not be used again. */
export type Rotated<T> = { result: T; isUsed: boolean }
export type Rotation<T> = { kind: 'rotated'; result: T } | { kind: 'refused'; reason: string }

export type TokenFamiliesOptions<T> = {
  name: string
  capacity: number
  results: RotationResults
  /** Time of repetition after a rotation; default 10 s. */
  repeatMs?: number
  /** Whether a value is a result; those of other data planes are copies. */
  isResult(value: unknown): value is T
}

const defaultRepeatMs = 10_000

/**
 * Numbers of a family: lowest unused generation, whether it is revoked, and the latest rotation: its data
 * plane plus 1 (0 without one), its generation, and the end of its repetition (infinite while in progress).
 */
const unusedAt = 0
const revokedAt = 1
const planeAt = 2
const generationAt = 3
const untilAt = 4
const size = 5

/** Cell of the mark that a family was revoked; the region has no lock. */
const someRevokedAt = 4

type Begin =
  | { kind: 'begun' }
  | { kind: 'repeated'; plane: number }
  | { kind: 'refused'; reason: string }
  | { kind: 'stolen' }

const begun: Begin = { kind: 'begun' }
const stolen: Begin = { kind: 'stolen' }
const revoked: Begin = { kind: 'refused', reason: 'was revoked' }
const inRotation: Begin = { kind: 'refused', reason: 'is in rotation' }
const alreadyUsed = { kind: 'refused', reason: 'was already used' } as const

/** Creates a store of the most recently used families. Evicted families count as unused. */
export function createTokenFamilies<T>(
  { name, capacity, results, repeatMs = defaultRepeatMs, isResult }: TokenFamiliesOptions<T>,
  memory: Memory,
  clock: Pick<Clock, 'monotonic'>,
): TokenFamilies<T> {
  const self = memory.plane + 1
  const families = createRecentRecords(memory, { name, maxRecords: capacity, size }, clock)
  const marks = memory.region(`${name}/marks`, (someRevokedAt + 2) * 4)

  function revoke(family: string): void {
    Atomics.store(marks.int32, someRevokedAt, 1)
    families.update(family, (numbers, from) => {
      numbers[from + revokedAt] = 1
    })
    results.delete(family)
  }

  function begin({ family, generation }: FamilyToken): Begin {
    const now = clock.monotonic()
    return families.update(family, (numbers, from) => {
      if (numbers[from + revokedAt] === 1) return revoked
      const plane = numbers[from + planeAt] ?? 0
      const until = numbers[from + untilAt] ?? 0
      if (plane !== 0 && numbers[from + generationAt] === generation && now < until)
        return { kind: 'repeated', plane: plane - 1 }
      if (generation < (numbers[from + unusedAt] ?? 0)) return stolen
      if (plane !== 0 && until === Number.POSITIVE_INFINITY) return inRotation
      numbers[from + planeAt] = self
      numbers[from + generationAt] = generation
      numbers[from + untilAt] = Number.POSITIVE_INFINITY
      return begun
    })
  }

  function end({ family, generation }: FamilyToken, isUsed: boolean): void {
    const until = clock.monotonic() + repeatMs
    families.update(family, (numbers, from) => {
      const isOwn = numbers[from + planeAt] === self && numbers[from + generationAt] === generation
      if (isUsed) numbers[from + unusedAt] = Math.max(numbers[from + unusedAt] ?? 0, generation + 1)
      if (isOwn && isUsed) numbers[from + untilAt] = until
      else if (isOwn) numbers[from + planeAt] = 0
    })
    if (!isUsed) results.delete(family)
  }

  /** Ends a rotation without a result: its data plane has ended. True if it was in progress. */
  function abandon({ family, generation }: FamilyToken, plane: number): boolean {
    return families.update(family, (numbers, from) => {
      if (numbers[from + planeAt] !== plane + 1 || numbers[from + generationAt] !== generation) return true
      if (numbers[from + untilAt] !== Number.POSITIVE_INFINITY) return false
      numbers[from + planeAt] = 0
      return true
    })
  }

  async function run(token: FamilyToken, work: () => Promise<Rotated<T>>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    results.set(token, promise)
    // The caller below receives the failure; without a second request the promise must not count as
    // unhandled.
    promise.catch(() => {})
    try {
      const { result, isUsed } = await work()
      end(token, isUsed)
      resolve(result)
      return result
    } catch (error) {
      end(token, false)
      reject(error)
      throw error
    }
  }

  return {
    async rotate(token, work) {
      for (;;) {
        const state = begin(token)
        if (state.kind === 'begun') return { kind: 'rotated', result: await run(token, work) }
        if (state.kind === 'refused') return state
        if (state.kind === 'stolen') {
          revoke(token.family)
          return alreadyUsed
        }
        const found = await results.get(token, state.plane)
        if (found !== undefined && isResult(found.result)) return { kind: 'rotated', result: found.result }
        // No theft: the response was lost with its data plane.
        if (!abandon(token, state.plane)) return alreadyUsed
      }
    },
    revoke,
    isRevoked: (family) =>
      marks.int32[someRevokedAt] === 1 &&
      families.find(family, (numbers, from) => numbers[from + revokedAt] === 1) === true,
  }
}
