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
