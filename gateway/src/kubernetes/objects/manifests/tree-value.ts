import type { TextMistake, YamlTree } from '../../../config/yaml/yaml.ts'

export type TreeValue = { readonly value: unknown; readonly mistakes: readonly TextMistake[] }

/** Bound on the expansion of aliases, in values and in units of 64 characters. */
const maxAliasCost = 100_000

/** Converts a document to JSON values, with aliases as copies. References to the environment stay text. */
export function treeValue(tree: YamlTree): TreeValue {
  const building: Building = { mistakes: [], cost: 0, aliases: 0 }
  return { value: build(tree, building), mistakes: building.mistakes }
}

type Building = { mistakes: TextMistake[]; cost: number; aliases: number }

function build(tree: YamlTree, building: Building): unknown {
  if (building.aliases > 0 && !payForAlias(tree, building)) return null
  switch (tree.kind) {
    case 'map':
      return Object.fromEntries(
        [...tree.entries].map(([key, { value }]) => [key, build(value, building)] as const),
      )
    case 'list':
      return tree.items.map((item) => build(item, building))
    case 'scalar':
      return tree.value
    case 'alias': {
      building.aliases++
      const value = build(tree.target, building)
      building.aliases--
      return value
    }
  }
}

/** Counts the expansion of aliases. Returns false above the bound, which is reported once. */
function payForAlias(tree: YamlTree, building: Building): boolean {
  if (building.cost > maxAliasCost) return false
  building.cost += tree.kind === 'scalar' ? 1 + (tree.end - tree.offset) / 64 : 1
  if (building.cost <= maxAliasCost) return true
  building.mistakes.push({
    offset: tree.offset,
    message: 'the aliases of this document expand to more than is allowed',
  })
  return false
}
