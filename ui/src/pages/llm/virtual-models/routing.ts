/** A record of `llm.virtualModels`. */
export type VirtualModelValue = {
  readonly name: string
  readonly routing?: Routing
}

export type Routing = {
  readonly weighted?: { readonly targets?: readonly WeightedTarget[] }
  readonly failover?: { readonly targets?: readonly FailoverTarget[] }
  readonly conditional?: { readonly targets?: readonly ConditionalTarget[] }
}

export type WeightedTarget = { readonly model: string; readonly weight?: number }
export type FailoverTarget = { readonly model: string; readonly priority?: number }
export type ConditionalTarget = { readonly model: string; readonly when?: string }

export type Strategy = 'weighted' | 'failover' | 'conditional'

/** Strategy of a virtual model; undefined if none or several are set. */
export function strategyOf(routing: Routing | undefined): Strategy | undefined {
  const present = (['weighted', 'failover', 'conditional'] as const).filter(
    (name) => routing?.[name] !== undefined,
  )
  return present.length === 1 ? present[0] : undefined
}

/** Models of all targets, in order. */
export function modelsOf(routing: Routing | undefined): readonly string[] {
  const strategy = strategyOf(routing)
  if (strategy === undefined) return []
  return (routing?.[strategy]?.targets ?? []).map(({ model }) => model)
}

/** Targets with their share of the requests. A weight that is not a number, such as a reference, counts as 1. */
export function sharesOf(
  targets: readonly WeightedTarget[],
): readonly { readonly model: string; readonly weight: number; readonly share: number }[] {
  const weights = targets.map(({ weight = 1 }) => (Number.isFinite(Number(weight)) ? Number(weight) : 1))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return targets.map(({ model }, index) => {
    const weight = weights[index] ?? 0
    return { model, weight, share: sum === 0 ? 0 : weight / sum }
  })
}

/** Targets of failover by priority, the first ones first. Those of equal priority share the load. */
export function stagesOf(
  targets: readonly FailoverTarget[],
): readonly { readonly priority: number; readonly models: readonly string[] }[] {
  const stages = Map.groupBy(targets, ({ priority = 0 }) => Number(priority))
  return [...stages]
    .sort(([one], [other]) => one - other)
    .map(([priority, members]) => ({ priority, models: members.map(({ model }) => model) }))
}
