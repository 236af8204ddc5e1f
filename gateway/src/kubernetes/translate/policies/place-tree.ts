import type { BackendTraffic } from '../plan.ts'
import type { Level } from './levels.ts'
import { type Merged, mergeLevels } from './merge.ts'

/** The levels of places, as a path from general to specific. Places with the same levels share a node. */
export type PlaceNode = {
  readonly levels: readonly Level[]
  readonly next: WeakMap<Level, PlaceNode>
  readonly merged: Map<BackendTraffic, Merged>
}

export function createNode(levels: readonly Level[]): PlaceNode {
  return { levels, next: new WeakMap(), merged: new Map() }
}

/** The node with one more level; the same without one. */
export function nodeBelow(node: PlaceNode, level: Level | undefined): PlaceNode {
  if (level === undefined) return node
  const known = node.next.get(level)
  if (known !== undefined) return known
  const created = createNode([...node.levels, level])
  node.next.set(level, created)
  return created
}

/** The policies of a node, merged once. */
export function mergedAt(node: PlaceNode, traffic: BackendTraffic): Merged {
  const known = node.merged.get(traffic)
  if (known !== undefined) return known
  const merged = mergeLevels(node.levels, traffic)
  node.merged.set(traffic, merged)
  return merged
}
