import type { Facts } from '../../../../pipeline/exchange.ts'
import { rendezvousScore } from '../../../../upstream/affinity/affinity.ts'
import type { Candidate } from '../candidate.ts'
import type { Latency } from './latency.ts'

/** A candidate with the digest of its configured target. */
export type Equal = { readonly candidate: Candidate; readonly digest: number }

/** Orders the candidates of one priority, best first. */
export type OrderEquals = (equals: readonly Equal[], facts: Facts) => readonly Equal[]

/** A random order. */
export function shuffle(equals: readonly Equal[], random: () => number): readonly Equal[] {
  return sortBy(equals, () => random())
}

/** The order of a session by rendezvous hashing: the removal of a target moves only its own sessions. */
export function compileStickyOrder(
  sessionOf: (facts: Facts) => number | undefined,
  random: () => number,
): OrderEquals {
  return (equals, facts) => {
    const session = sessionOf(facts)
    if (session === undefined) return shuffle(equals, random)
    return sortBy(equals, ({ digest }) => -rendezvousScore(session, digest))
  }
}

/**
 * Of two random targets, the one with the shorter recent time to the first byte is first: the fastest of all
 * would receive every request until it is the slowest.
 */
export function compileLatencyOrder(random: () => number): OrderEquals {
  return (equals, facts) => {
    const [one, other, ...rest] = shuffle(equals, random)
    if (one === undefined || other === undefined) return equals
    const call = facts.llm?.streaming === true ? 'streamed' : 'whole'
    return estimateOf(other, call) < estimateOf(one, call) ? [other, one, ...rest] : [one, other, ...rest]
  }
}

function estimateOf({ candidate }: Equal, call: Parameters<Latency['estimate']>[0]): number {
  return candidate.target.latency?.estimate(call) ?? 0
}

/** The lowest price first, unknown ones last, and equal ones in random order. */
export function compileCostOrder(
  priceOf: (candidate: Candidate, facts: Facts) => number | undefined,
  random: () => number,
): OrderEquals {
  return (equals, facts) =>
    sortBy(shuffle(equals, random), ({ candidate }) => priceOf(candidate, facts) ?? Number.POSITIVE_INFINITY)
}

/** A stable sort by a number that is computed once per item. */
function sortBy(equals: readonly Equal[], rankOf: (equal: Equal) => number): readonly Equal[] {
  if (equals.length < 2) return equals
  return equals
    .map((equal) => ({ equal, rank: rankOf(equal) }))
    .sort((one, other) => compare(one.rank, other.rank))
    .map(({ equal }) => equal)
}

/** The difference of two infinite ranks is not a number. */
function compare(one: number, other: number): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}
