import type { Cooldown } from './cooldown.ts'

/** Randomises the order within equal priorities; `ordered` is sorted by priority. */
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

/** Moves candidates in cooldown to the end, in stable order. `now` is monotonic. */
export function availableFirst<T extends { target: { cooldown: Cooldown } }>(
  candidates: readonly T[],
  now: number,
): readonly T[] {
  const isAvailable = ({ target }: T) => target.cooldown.until <= now
  if (candidates.every(isAvailable)) return candidates
  return [...candidates.filter(isAvailable), ...candidates.filter((each) => !isAvailable(each))]
}
