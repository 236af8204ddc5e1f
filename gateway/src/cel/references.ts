import { childrenOf, type Node, parseCel } from './ast.ts'

/**
 * Whether an expression references `root.field`, `root["field"]` or `has(root.field)`. False for invalid
 * syntax.
 */
export function referencesField(source: string | Node, root: string, field: string): boolean {
  const node = typeof source === 'string' ? treeOf(source) : source
  return node !== undefined && reads(node, root, field)
}

function treeOf(source: string): Node | undefined {
  const parsed = parseCel(source)
  return parsed.kind === 'tree' ? parsed.node : undefined
}

/** Operators and methods that compare a text with another text or with a prefix. */
const comparisons: ReadonlySet<string> = new Set(['_==_', '_!=_', '@in', 'startsWith'])

/**
 * Whether an expression compares `root.field` by `==`, `!=`, `in` or `startsWith`. False for invalid syntax.
 */
export function comparesField(source: string, root: string, field: string): boolean {
  const node = treeOf(source)
  return node !== undefined && compares(node, root, field)
}

function compares(node: Node, root: string, field: string): boolean {
  if (node.kind === 'call' && comparisons.has(node.name)) {
    const operands = node.target === undefined ? node.args : [node.target]
    if (operands.some((operand) => isField(operand, root, field))) return true
  }
  return childrenOf(node).some((part) => compares(part, root, field))
}

/** Whether an expression references a variable. */
export function referencesVariable(source: string, root: string): boolean {
  if (!source.includes(root)) return false
  const node = treeOf(source)
  return node !== undefined && namesRoot(node, root)
}

/** Whether an expression calls `variables()`, which references every variable. */
export function callsVariables(node: Node): boolean {
  if (node.kind === 'call' && node.name === 'variables' && node.target === undefined) return true
  return childrenOf(node).some(callsVariables)
}

/** Whether an expression calls `unredacted()`. False for invalid syntax. */
export function revealsCredential(source: string | Node): boolean {
  const node = typeof source === 'string' ? treeOf(source) : source
  return node !== undefined && callsMethod(node, 'unredacted')
}

/** Whether an expression, or a custom function that it calls, calls a method. */
function callsMethod(node: Node, name: string): boolean {
  if (node.kind === 'call' && node.name === name && node.target !== undefined) return true
  return childrenOf(node).some((part) => callsMethod(part, name))
}

function namesRoot(node: Node, root: string): boolean {
  return isRoot(node, root) || childrenOf(node).some((part) => namesRoot(part, root))
}

function reads(node: Node, root: string, field: string): boolean {
  return isField(node, root, field) || childrenOf(node).some((part) => reads(part, root, field))
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
