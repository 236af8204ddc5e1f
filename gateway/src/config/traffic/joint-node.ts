import type { CompileContext } from '../../pipeline/compile-context.ts'

/** Cache key of a result that depends on several configuration nodes. */
export type JointNode = { readonly next: WeakMap<object, JointNode> }

/** Returns the same key for the same nodes. It lives until one of them changes. */
export function jointNode(
  first: object,
  others: readonly object[],
  { cached }: Pick<CompileContext, 'cached'>,
): JointNode {
  let here = cached(first, 'joint node', createNode)
  for (const node of others) {
    const next = here.next.get(node) ?? createNode()
    here.next.set(node, next)
    here = next
  }
  return here
}

function createNode(): JointNode {
  return { next: new WeakMap() }
}
