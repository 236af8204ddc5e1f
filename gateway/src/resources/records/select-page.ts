import type { YieldPoint } from '../../lib/scheduling/yielding.ts'

type Placed<T, Position> = { readonly item: T; readonly position: Position }

export type PageSelection<T, Position> = {
  /** Position of an item; undefined for items that are not selected. */
  positionOf(item: T): Position | undefined
  /** Order of positions, all of which differ. */
  compare(one: Position, other: Position): number
  /** Last position of the previous page. */
  readonly after: Position | undefined
  readonly limit: number
}

export type SelectedPage<T, Position> = {
  readonly items: readonly T[]
  /** Position of the last item, if there are further items. */
  readonly end: Position | undefined
  /** Number of selected items on all pages. */
  readonly total: number
}

/**
 * Selects a page in one pass. The page is sorted, not the items: memory, and work between two yields, are
 * bounded with any number of items.
 */
export async function selectPage<T, Position>(
  items: Iterable<T>,
  { positionOf, compare, after, limit }: PageSelection<T, Position>,
  yieldPoint: YieldPoint,
): Promise<SelectedPage<T, Position>> {
  const order = (one: Placed<T, Position>, other: Placed<T, Position>) =>
    compare(one.position, other.position)
  let page: Placed<T, Position>[] = []
  let last: Position | undefined
  let total = 0
  for (const item of items) {
    const pause = yieldPoint()
    if (pause) await pause
    const position = positionOf(item)
    if (position === undefined) continue
    total += 1
    if (after !== undefined && compare(position, after) <= 0) continue
    if (last !== undefined && compare(position, last) > 0) continue
    page.push({ item, position })
    if (page.length < 2 * (limit + 1)) continue
    page = page.sort(order).slice(0, limit + 1)
    last = page.at(-1)?.position
  }
  page.sort(order)
  const shown = page.slice(0, limit)
  const end = page.length > limit ? shown.at(-1)?.position : undefined
  return { items: shown.map(({ item }) => item), end, total }
}
