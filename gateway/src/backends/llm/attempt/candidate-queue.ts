import type { Clock } from '../../../lib/clock.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/candidate.ts'
import { isLarger } from '../models/routing/context-window.ts'
import type { Turn } from './attempt.ts'
import { recordSkipped } from './attempt-record.ts'

/** Candidates of a call in order, those with evicted targets after the others. */
export type CandidateQueue = {
  /** The next candidate; undefined without any. */
  next(): Turn | undefined
  /** Removes candidates whose context window is not larger; undefined removes none. */
  requireLarger(than: number | undefined): void
}

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

  function turnOf(candidate: Candidate): Turn {
    return {
      candidate,
      isLast: isLast(),
      hasLarger() {
        const accepts = (other: Candidate) => isLarger(other, candidate.contextWindow)
        return pending.slice(index).some(accepts) || deferred.some(accepts)
      },
    }
  }

  return {
    next() {
      for (; isFirstRound && index < pending.length; ) {
        const candidate = pending[index]
        index += 1
        if (candidate === undefined) continue
        if (isLast() || candidate.target.eviction.admits()) return turnOf(candidate)
        recordSkipped(exchange, candidate, 'evicted', clock)
        deferred = [...deferred, candidate]
      }
      if (isFirstRound) {
        isFirstRound = false
        pending = deferred
        index = 0
        deferred = none
      }
      const candidate = pending[index]
      index += 1
      return candidate && turnOf(candidate)
    },
    requireLarger(than) {
      if (than === undefined) return
      pending = pending.slice(index).filter((candidate) => isLarger(candidate, than))
      index = 0
      deferred = deferred.filter((candidate) => isLarger(candidate, than))
    },
  }
}
