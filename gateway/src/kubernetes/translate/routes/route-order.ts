/**
 * Removes items from a sorted list and inserts others, in time proportional to its length. `compare` is never
 * 0 for different items.
 */
export function updateOrder<Item>(
  sorted: readonly Item[],
  { isKept, added }: { readonly isKept: (item: Item) => boolean; readonly added: readonly Item[] },
  compare: (a: Item, b: Item) => number,
): readonly Item[] {
  const inserted = [...added].sort(compare)
  const result: Item[] = []
  let at = 0
  for (const item of sorted) {
    if (!isKept(item)) continue
    for (let next = inserted[at]; next !== undefined && compare(next, item) < 0; next = inserted[at]) {
      result.push(next)
      at += 1
    }
    result.push(item)
  }
  for (const item of inserted.slice(at)) result.push(item)
  return result
}

/** The numbers of equal items at the start and at the end of two lists, which do not overlap. */
export function equalEnds<Item>(
  some: readonly Item[],
  others: readonly Item[],
): readonly [start: number, end: number] {
  const shorter = Math.min(some.length, others.length)
  let start = 0
  while (start < shorter && some[start] === others[start]) start += 1
  let end = 0
  while (end < shorter - start && some[some.length - 1 - end] === others[others.length - 1 - end]) end += 1
  return [start, end]
}

/** An object of the API with results of its translation. */
type Stated = { readonly pass: { last: number } }

/**
 * Creates a function that returns the states of objects in order. A state belongs to its object, and ends
 * with the first pass without it.
 */
export function createStates<Route, State extends Stated>(
  create: (route: Route) => State,
  compare: (a: State, b: State) => number,
): (maps: readonly ReadonlyMap<string, Route>[]) => readonly State[] {
  const states = new Map<Route, State>()
  let sorted: readonly State[] = []
  let pass = 0
  return (maps) => {
    pass += 1
    const added: State[] = []
    let count = 0
    for (const map of maps) {
      for (const route of map.values()) {
        let state = states.get(route)
        if (state === undefined) {
          state = create(route)
          states.set(route, state)
          added.push(state)
        }
        state.pass.last = pass
        count += 1
      }
    }
    if (added.length === 0 && count === sorted.length) return sorted
    sorted = updateOrder(sorted, { isKept: (state) => state.pass.last === pass, added }, compare)
    if (states.size > count)
      for (const [route, state] of states) if (state.pass.last !== pass) states.delete(route)
    return sorted
  }
}
