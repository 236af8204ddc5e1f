/** The list with members of one item replaced. */
export function withItem<Item>(
  items: readonly Item[],
  index: number,
  change: Partial<Item>,
): readonly Item[] {
  return items.map((item, position) => (position === index ? { ...item, ...change } : item))
}

/** The list without one item. */
export function withoutItem<Item>(items: readonly Item[], index: number): readonly Item[] {
  return items.filter((_, position) => position !== index)
}
