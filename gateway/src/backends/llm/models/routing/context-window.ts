import type { Candidate } from '../candidate.ts'

/**
 * Candidates whose context window is large enough or unknown, in their order, then the others, largest window
 * first: the estimate of the prompt may be too high.
 */
export function fittingFirst(candidates: readonly Candidate[], promptTokens: number): readonly Candidate[] {
  const fits = ({ contextWindow }: Candidate) => contextWindow === undefined || contextWindow >= promptTokens
  if (candidates.every(fits)) return candidates
  const others = candidates.filter((candidate) => !fits(candidate))
  return [
    ...candidates.filter(fits),
    ...others.sort((one, other) => (other.contextWindow ?? 0) - (one.contextWindow ?? 0)),
  ]
}

/** Whether a candidate may accept a prompt that was too long for a context window, undefined if unknown. */
export function isLarger({ contextWindow }: Candidate, than: number | undefined): boolean {
  return contextWindow === undefined || than === undefined || contextWindow > than
}
