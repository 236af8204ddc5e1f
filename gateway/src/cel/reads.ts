import { partsOf } from './check.ts'
import { type Node, parseCel } from './tree.ts'

/** Whether an expression names `root.field`, also as `root["field"]` or inside `has()`. False for one that does not parse. */
export function readsField(source: string, root: string, field: string): boolean {
  const parsed = parseCel(source)
  return parsed.kind === 'tree' && reads(parsed.node, root, field)
}

function reads(node: Node, root: string, field: string): boolean {
  return isField(node, root, field) || partsOf(node).some((part) => reads(part, root, field))
}

function isField(node: Node, root: string, field: string): boolean {
  if (node.kind === 'select' || node.kind === 'has') return node.field === field && isRoot(node.operand, root)
  if (node.kind !== 'call' || node.name !== '_[_]') return false
  const [operand, index] = node.target === undefined ? node.args : [node.target, ...node.args]
  return isRoot(operand, root) && index?.kind === 'constant' && index.value === field
}

function isRoot(node: Node | undefined, root: string): boolean {
  return node?.kind === 'identifier' && node.name === root
}
