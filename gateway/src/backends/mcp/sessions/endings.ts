import type { Clock } from '../../../lib/clock.ts'

/** The end of a session. */
export type Ending = {
  readonly fingerprint: string
  readonly owner: string
  readonly reason: string
  /** Whether the id would otherwise be resumable. */
  readonly sealed: boolean
}

/** All endings of an endpoint, as plain data. */
export type EndingsSnapshot = {
  readonly ended: ReadonlyMap<string, number>
  readonly reasons: ReadonlyMap<string, EndReason>
  readonly presumedEndedUntil: number
}

export type EndReason = { readonly owner: string; readonly reason: string }

/** Record of ended sessions. */
export type Endings = {
  /** Number of ended sealed sessions. */
  readonly size: number
  record(ending: Ending): void
  /** Whether a sealed session has ended. `createdAt` is in milliseconds since the epoch. */
  has(fingerprint: string, createdAt: number): boolean
  reasonOf(fingerprint: string, owner: string): string | undefined
  /** Removes ids at the end of their lifetime. */
  sweep(): void
  snapshot(): EndingsSnapshot
  /** Adds the endings of another record. */
  restore(snapshot: EndingsSnapshot): void
}

/** Maximum lifetime of a sealed session, and storage time of its id after its end. */
export const sealedLifetimeMs = 24 * 60 * 60 * 1000
/** Maximum number of stored end reasons. */
const maxEndReasons = 1_000

/** Creates a record with at most `maxIds` ids of sealed sessions. */
export function createEndings(clock: Clock, maxIds: number): Endings {
  /** Ids of ended sealed sessions, with the end of their lifetime. */
  const ended = new Map<string, number>()
  /** Latest end reasons by fingerprint of the id. */
  const reasons = new Map<string, EndReason>()
  /**
   * Sealed sessions created until this time count as ended unless active, because some stored ids were
   * evicted.
   */
  let presumedEndedUntil = 0

  function recordEnded(fingerprint: string, until: number): void {
    ended.set(fingerprint, until)
    if (ended.size <= maxIds) return
    const [oldest] = ended
    if (oldest === undefined) return
    ended.delete(oldest[0])
    presumedEndedUntil = Math.max(presumedEndedUntil, oldest[1] - sealedLifetimeMs)
  }

  function recordReason(fingerprint: string, reason: EndReason): void {
    reasons.set(fingerprint, reason)
    if (reasons.size <= maxEndReasons) return
    const [oldest] = reasons.keys()
    if (oldest !== undefined) reasons.delete(oldest)
  }

  return {
    get size() {
      return ended.size
    },
    record({ fingerprint, owner, reason, sealed }) {
      // The first reason is the cause; later ones follow from it.
      if (!reasons.has(fingerprint)) recordReason(fingerprint, { owner, reason })
      if (sealed && !ended.has(fingerprint)) recordEnded(fingerprint, clock.now() + sealedLifetimeMs)
    },
    has: (fingerprint, createdAt) => createdAt <= presumedEndedUntil || ended.has(fingerprint),
    reasonOf(fingerprint, owner) {
      const ending = reasons.get(fingerprint)
      return ending?.owner === owner ? ending.reason : undefined
    },
    sweep() {
      const now = clock.now()
      for (const [fingerprint, until] of ended) {
        if (until > now) break
        ended.delete(fingerprint)
      }
    },
    snapshot: () => ({ ended, reasons, presumedEndedUntil }),
    restore(snapshot) {
      presumedEndedUntil = Math.max(presumedEndedUntil, snapshot.presumedEndedUntil)
      for (const [fingerprint, until] of snapshot.ended) {
        if (!ended.has(fingerprint)) recordEnded(fingerprint, until)
      }
      for (const [fingerprint, reason] of snapshot.reasons) {
        if (!reasons.has(fingerprint)) recordReason(fingerprint, reason)
      }
    },
  }
}
