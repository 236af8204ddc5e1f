/** Something that requests can go to. */
export type Choosable = {
  readonly weight: number
  /** Undefined where failures have no consequences. */
  readonly health: { isEjected(): boolean } | undefined
}

/** Picks one of several; `tried` are those a retry should leave out as long as there are others. Undefined when there is none. */
export type Choose<C> = (tried?: ReadonlySet<C>) => C | undefined

/**
 * Picks by weight. What is ejected is left out as long as something else is left, and so is what was tried: when nothing is,
 * a failing backend is better than none.
 */
export function compileChoice<C extends Choosable>(all: readonly C[], random: () => number): Choose<C> {
  const weighted = all.filter(({ weight }) => weight > 0)
  const [only] = weighted
  if (weighted.length < 2) return () => only
  return (tried) => {
    const picked = pick(weighted, random)
    if (!tried && picked?.health?.isEjected() !== true) return picked
    const healthy = weighted.filter(({ health }) => health?.isEjected() !== true)
    const untried = tried ? healthy.filter((one) => !tried.has(one)) : healthy
    if (untried.length > 0) return pick(untried, random)
    return healthy.length > 0 ? pick(healthy, random) : picked
  }
}

function pick<C extends Choosable>(from: readonly C[], random: () => number): C | undefined {
  let total = 0
  for (const { weight } of from) total += weight
  let rest = random() * total
  for (const one of from) {
    rest -= one.weight
    if (rest < 0) return one
  }
  // Rounding: the numbers do not add up exactly.
  return from[from.length - 1]
}
