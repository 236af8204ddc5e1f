/** An item that is chosen in proportion to its weight, an integer of 0 or more. */
export type Weighted = { readonly weight: number }

/**
 * Chooses an item with a probability of its weight divided by the sum of weights. `random` is in [0, 1).
 * Items of weight 0 are never chosen; returns undefined if there are no others.
 */
export function chooseWeighted<T extends Weighted>(items: readonly T[], random: number): T | undefined {
  let total = 0
  for (const { weight } of items) total += weight
  let offset = random * total
  for (const item of items) {
    if (offset < item.weight) return item
    offset -= item.weight
  }
  // Rounding may exceed the sum.
  return items.findLast(({ weight }) => weight > 0)
}
