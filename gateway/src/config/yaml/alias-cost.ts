import type { YamlTree } from './yaml.ts'

/** Bound on the expansion of aliases, in values and in units of 64 characters. */
const maxAliasCost = 100_000

/** Cost of the aliases that were expanded so far, and the number of aliases around the current value. */
export type AliasCost = { cost: number; depth: number }

export function createAliasCost(): AliasCost {
  return { cost: 0, depth: 0 }
}

/** Expands the target of an alias with `build`. */
export function expandAlias<T>(aliases: AliasCost, build: () => T): T {
  aliases.depth++
  const value = build()
  aliases.depth--
  return value
}

/** Counts a value inside an alias. False above the bound; `onExceeded` is called for the first such value. */
export function payForAlias(tree: YamlTree, aliases: AliasCost, onExceeded: () => void): boolean {
  if (aliases.depth === 0) return true
  if (aliases.cost > maxAliasCost) return false
  aliases.cost += tree.kind === 'scalar' ? 1 + (tree.end - tree.offset) / 64 : 1
  if (aliases.cost <= maxAliasCost) return true
  onExceeded()
  return false
}
