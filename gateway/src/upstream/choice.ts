import { chooseWeighted, type Weighted } from './weighted-choice.ts'

/** A backend that requests are distributed to. */
export type Choosable = Weighted & {
  /** Undefined without health policy. */
  readonly health: { isEjected(): boolean } | undefined
}

/**
 * Chooses a backend. A retry excludes the backends in `tried` if others remain. Undefined without a backend.
 */
export type Choose<C> = (tried?: ReadonlySet<C>) => C | undefined

/**
 * Compiles a choice by weight that skips ejected backends, then tried ones. If none remain, the exclusions
 * are dropped: a failing backend is better than none.
 */
export function compileChoice<C extends Choosable>(all: readonly C[], random: () => number): Choose<C> {
  const weighted = all.filter(({ weight }) => weight > 0)
  const [only] = weighted
  if (weighted.length < 2) return () => only
  return (tried) => {
    const chosen = chooseWeighted(weighted, random())
    if (!tried && chosen?.health?.isEjected() !== true) return chosen
    const healthy = weighted.filter(({ health }) => health?.isEjected() !== true)
    const untried = tried ? healthy.filter((one) => !tried.has(one)) : healthy
    if (untried.length > 0) return chooseWeighted(untried, random())
    return healthy.length > 0 ? chooseWeighted(healthy, random()) : chosen
  }
}
