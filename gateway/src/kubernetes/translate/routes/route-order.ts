import { compareByAge, type ObjectKey, type ObjectMeta } from '../../objects/meta.ts'

type Aged = { readonly kind: string; readonly metadata: ObjectMeta }

/**
 * Creates a function that sorts objects by precedence: age, then key, then the order of the maps. It inserts
 * changed objects into the previous order, which takes time proportional to the number of objects.
 */
export function createOrder<Item extends Aged>(): (
  maps: readonly ReadonlyMap<ObjectKey, Item>[],
) => readonly Item[] {
  let sorted: readonly Item[] = []
  return (maps) => {
    const present = new Set<Item>()
    for (const map of maps) for (const item of map.values()) present.add(item)
    const kept = sorted.filter((item) => present.delete(item))
    if (present.size === 0 && kept.length === sorted.length) return sorted
    sorted = merged(kept, [...present].sort(compare))
    return sorted
  }
}

/** HTTPRoutes precede GRPCRoutes of the same name. */
function compare(a: Aged, b: Aged): number {
  return compareByAge(a, b) || (a.kind < b.kind ? 1 : a.kind > b.kind ? -1 : 0)
}

function merged<Item extends Aged>(some: readonly Item[], others: readonly Item[]): readonly Item[] {
  const result: Item[] = []
  let at = 0
  for (const item of some) {
    for (let next = others[at]; next !== undefined && compare(next, item) < 0; next = others[at]) {
      result.push(next)
      at += 1
    }
    result.push(item)
  }
  return [...result, ...others.slice(at)]
}
