import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { References } from '../backends/references.ts'
import type { BackendTraffic, GatewayPlan, RouteConfig, RouteKind } from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'

export type RoutePolicies = NonNullable<RouteConfig['policies']>

/** The place of a route rule. */
export type PolicyPlace = {
  readonly gateway: ObjectKey
  readonly listener: string
  readonly route: { readonly kind: RouteKind; readonly key: ObjectKey }
  /** Name of the rule. */
  readonly rule: string | undefined
  /** Kind of the requests of the rule. Policies of other kinds have no effect on it. */
  readonly traffic: BackendTraffic
}

/** The policies of a place, merged. The same object for the same inputs. */
export type Effective = {
  readonly policies: RouteConfig['policies'] | undefined
  /** Names of the backends that the policies refer to. */
  readonly backends: readonly string[]
  /** Reason to answer 500: a policy of the place is invalid. */
  readonly denied?: string | undefined
}

/**
 * Adds the policies that a rule itself has, from filters and timeouts, which take precedence. With a
 * `directResponse` in the result, the rule answers every request and has no backends in the Config.
 */
export function withRulePolicies(
  effective: Effective,
  own: RoutePolicies | undefined,
): RoutePolicies | undefined {
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

export type PolicyIndex = {
  /** Called for every accepted place in every pass: statuses report the places. */
  policiesOf(place: PolicyPlace): Effective
  /** Of GatewayPolicies; called after the routes are translated. */
  statuses(): readonly ObjectStatus[]
}

export type PoliciesInput = {
  readonly objects: ObjectSet
  readonly references: References
  readonly plans: readonly GatewayPlan[]
}

/** Merged policies by those of the rule. */
const merged = new WeakMap<RoutePolicies, WeakMap<Effective, RoutePolicies>>()

const noPolicies: Effective = { policies: undefined, backends: [] }

/** Creates the step that indexes GatewayPolicies by target. It caches the results of a call. */
export function createPolicyIndexer(): (input: PoliciesInput) => PolicyIndex {
  return () => ({ policiesOf: () => noPolicies, statuses: () => [] })
}
