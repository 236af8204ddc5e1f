import type { Clock } from '../../../lib/clock.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/candidate.ts'
import { isLarger } from '../models/routing/context-window.ts'
import type { Target } from '../models/target.ts'
import type { Turn } from './attempt.ts'
import { recordSkipped } from './attempt-record.ts'

/**
 * Candidates of a call in order, those with evicted or occupied targets after the others. The slots of a
 * candidate that is returned are acquired, unless it `waits`.
 */
export type CandidateQueue = {
  /** The next candidate; undefined without any. */
  next(): QueuedTurn | undefined
  /** The next candidate that is neither evicted nor occupied; the queue continues without it. */
  takeReady(): Turn | undefined
  /** Removes candidates whose context window is not larger; undefined removes none. */
  requireLarger(than: number | undefined): void
}

/** A turn whose slot is not acquired if `waits`. */
export type QueuedTurn = Turn & { readonly waits: boolean }

const none: readonly Candidate[] = []

export function createCandidateQueue(
  exchange: Exchange,
  candidates: readonly Candidate[],
  clock: Clock,
): CandidateQueue {
  let pending = candidates
  let index = 0
  let deferred = none
  let isFirstRound = true

  function isLast(): boolean {
    return index >= pending.length && deferred.length === 0
  }

  function turnOf(candidate: Candidate, waits: boolean): QueuedTurn {
    return {
      candidate,
      waits,
      isLast: isLast(),
      hasLarger() {
        const accepts = (other: Candidate) => isLarger(other, candidate.contextWindow)
        return pending.slice(index).some(accepts) || deferred.some(accepts)
      },
    }
  }

  /** The next candidate of the first round that is ready, or the last one. */
  function nextReady(): QueuedTurn | undefined {
    while (index < pending.length) {
      const candidate = pending[index]
      index += 1
      if (candidate === undefined) continue
      if (isLast()) return turnOf(candidate, candidate.target.slots !== undefined)
      const reason = notReady(candidate.target)
      if (reason === undefined) return turnOf(candidate, false)
      recordSkipped(exchange, candidate, reason, clock)
      deferred = [...deferred, candidate]
    }
    return undefined
  }

  return {
    next() {
      if (isFirstRound) {
        const turn = nextReady()
        if (turn !== undefined) return turn
        isFirstRound = false
        pending = deferred
        index = 0
        deferred = none
      }
      const candidate = pending[index]
      index += 1
      return candidate && turnOf(candidate, candidate.target.slots !== undefined)
    },
    takeReady() {
      for (let at = index; isFirstRound && at < pending.length; at += 1) {
        const candidate = pending[at]
        if (candidate === undefined || notReady(candidate.target) !== undefined) continue
        pending = pending.filter((_, position) => position !== at)
        return turnOf(candidate, false)
      }
      return undefined
    },
    requireLarger(than) {
      if (than === undefined) return
      pending = pending.slice(index).filter((candidate) => isLarger(candidate, than))
      index = 0
      deferred = deferred.filter((candidate) => isLarger(candidate, than))
    },
  }
}

/** Why a target is not tried before others; undefined if it is, with a slot. */
function notReady({ eviction, slots }: Target): 'evicted' | 'busy' | undefined {
  if (!eviction.admits()) return 'evicted'
  if (slots === undefined || slots.tryAcquire()) return undefined
  eviction.undecided()
  return 'busy'
}
