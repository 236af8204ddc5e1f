import type { CompileContext } from '../pipeline/compile-context.ts'

/** The two memories of compiling: results by config node, and state that outlives the nodes. */
export function createCompileMemory(): Pick<CompileContext, 'memo' | 'keep'> {
  const results = new WeakMap<object, Map<string, unknown>>()
  // Weak, so that state lives exactly as long as some snapshot, or a request still on an old one, uses it.
  const states = new Map<string, WeakRef<object>>()
  const dropped = new FinalizationRegistry<string>((name) => {
    if (states.get(name)?.deref() === undefined) states.delete(name)
  })

  return {
    memo<T>(node: object, purpose: string, create: () => T): T {
      let byPurpose = results.get(node)
      if (!byPurpose) {
        byPurpose = new Map()
        results.set(node, byPurpose)
      }
      if (byPurpose.has(purpose)) return byPurpose.get(purpose) as T
      const result = create()
      byPurpose.set(purpose, result)
      return result
    },
    keep<T extends object>(name: string, create: () => T): T {
      const known = states.get(name)?.deref()
      if (known !== undefined) return known as T
      const state = create()
      states.set(name, new WeakRef(state))
      dropped.register(state, name)
      return state
    },
  }
}
