import type { RoutePolicies } from '../../plan.ts'
import type { Effective } from '../../policies/policies.ts'

/**
 * Adds the policies that a rule itself has, from filters and timeouts, which take precedence. With a
 * `directResponse` in the result, the rule answers every request and has no backends in the Config.
 */
export type AddRulePolicies = (
  effective: Effective,
  own: RoutePolicies | undefined,
) => RoutePolicies | undefined

/** Creates the function that adds policies of rules. The same inputs have the same result. */
export function createRulePolicies(): AddRulePolicies {
  const merged = new WeakMap<RoutePolicies, WeakMap<Effective, RoutePolicies>>()
  return (effective, own) => {
    const { policies } = effective
    if (own === undefined || policies === undefined) return own ?? policies
    const known = merged.get(own) ?? new WeakMap<Effective, RoutePolicies>()
    merged.set(own, known)
    const existing = known.get(effective)
    if (existing !== undefined) return existing
    const { directResponse, ...others } = policies
    const answers = directResponse !== undefined && own.requestRedirect === undefined
    const result = { ...others, ...(answers && { directResponse }), ...own }
    known.set(effective, result)
    return result
  }
}
