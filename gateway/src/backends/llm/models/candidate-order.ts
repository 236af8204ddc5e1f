import type { Cooldown } from './target.ts'

/** Each run of equal priorities in random order; `ordered` is by priority already. */
export function shuffleWithinPriority<T extends { priority: number }>(
  ordered: readonly T[],
  random: () => number,
): readonly T[] {
  if (ordered.length < 2) return ordered
  return ordered
    .map((target) => ({ target, rank: random() }))
    .sort((one, other) => one.target.priority - other.target.priority || one.rank - other.rank)
    .map(({ target }) => target)
}

/** Those that failed a moment ago come last; else the order stays. `now` is monotonic. */
export function availableFirst<T extends { target: { cooldown: Cooldown } }>(
  candidates: readonly T[],
  now: number,
): readonly T[] {
  const isHealthy = ({ target }: T) => target.cooldown.until <= now
  if (candidates.every(isHealthy)) return candidates
  return [...candidates.filter(isHealthy), ...candidates.filter((each) => !isHealthy(each))]
}
