import type { Path } from '../../../../schema/path.ts'
import type { GatewayPolicySpec } from '../../../own-kinds/gateway-policy/gateway-policy.ts'
import type { BackendTraffic, FrontendPolicies, RoutePolicies } from '../../plan.ts'
import type { Lookups } from '../lookups.ts'

/** A reference that does not resolve. */
export type Unresolved = {
  /** Reason of the condition ResolvedRefs. */
  readonly reason: string
  readonly message: string
}

/** A field of a policy as policies of a route. */
export type Field = {
  /** Policies with this field only. */
  readonly policies: RoutePolicies
  /** Settings of a Gateway, in place of policies of routes. */
  readonly frontend?: FrontendPolicies | undefined
  /** Names of backends that the field refers to. */
  readonly backends: readonly string[]
  /** Mistakes that make the targets refuse requests, with paths below `spec`. */
  readonly mistakes: readonly Mistake[]
  readonly unresolved: readonly Unresolved[]
  /** Path below `spec` of a path in `policies`. */
  written(path: Path): Path
}

export type Mistake = { readonly path: Path; readonly message: string }

/** How a field translates and merges. */
export type FieldKind = {
  /** Path below `spec`: the unit of merging and of conflicts. */
  readonly path: string
  /** Kinds of traffic that the field affects. */
  readonly traffic: readonly BackendTraffic[]
  /** Whether the fields of all levels apply, or only that of the most specific level. */
  readonly levels: 'all' | 'mostSpecific'
  /** Whether the field applies to a Gateway as a whole instead of routes. */
  readonly isOfGateway?: true
  /** Undefined if the policy does not have the field. */
  translate(spec: GatewayPolicySpec, lookups: Lookups): Field | undefined
  /** The part of the policies for one kind of traffic; undefined if there is none. */
  partFor?(policies: RoutePolicies, traffic: BackendTraffic): RoutePolicies | undefined
}

/** Creates a field without references. `place` is its path in `policies`, `path` below `spec`. */
export function fieldOf(
  policies: RoutePolicies,
  { place, path, rename }: { place: Path; path: Path; rename?: ((rest: Path) => Path) | undefined },
): Field {
  return {
    policies,
    backends: [],
    mistakes: [],
    unresolved: [],
    written(at) {
      const rest = at.slice(place.length)
      return [...path, ...(rename === undefined ? rest : rename(rest))]
    },
  }
}
