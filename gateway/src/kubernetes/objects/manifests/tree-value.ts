import { type AliasCost, createAliasCost, expandAlias, payForAlias } from '../../../config/yaml/alias-cost.ts'
import type { TextMistake, YamlTree } from '../../../config/yaml/yaml.ts'

export type TreeValue = { readonly value: unknown; readonly mistakes: readonly TextMistake[] }

/** Converts a document to JSON values, with aliases as copies. References to the environment stay text. */
export function treeValue(tree: YamlTree): TreeValue {
  const building: Building = { mistakes: [], aliases: createAliasCost() }
  return { value: build(tree, building), mistakes: building.mistakes }
}

type Building = { mistakes: TextMistake[]; aliases: AliasCost }

function build(tree: YamlTree, building: Building): unknown {
  if (!payForAlias(tree, building.aliases, () => refuseAliases(tree, building))) return null
  switch (tree.kind) {
    case 'map':
      return Object.fromEntries(
        [...tree.entries].map(([key, { value }]) => [key, build(value, building)] as const),
      )
    case 'list':
      return tree.items.map((item) => build(item, building))
    case 'scalar':
      return tree.value
    case 'alias':
      return expandAlias(building.aliases, () => build(tree.target, building))
  }
}

function refuseAliases({ offset }: YamlTree, { mistakes }: Building): void {
  mistakes.push({ offset, message: 'the aliases of this document expand to more than is allowed' })
}
