import { compareByAge, type ObjectKey } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../objects/object-set.ts'
import type { GatewayPolicy } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { References } from '../backends/references.ts'
import type { BackendTraffic, GatewayPlan, RouteConfig, RouteKind } from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import { createFrontends, type GatewayFrontend } from './gateway-frontend.ts'
import { invalidPolicy } from './invalid-policy.ts'
import { createLevels, type OwnerLevels } from './levels-by-target.ts'
import { createLookups, type RecordedLookups, type Surroundings, surroundingsOf } from './lookups.ts'
import { createNode, mergedAt, nodeBelow, type PlaceNode } from './place-tree.ts'
import { policyStatuses, type SeenPlaces } from './policy-status.ts'
import { targetsOf } from './targets.ts'
import { type TranslatedPolicy, translatePolicy } from './translate-policy.ts'

/** The place of a route rule. */
export type PolicyPlace = {
  readonly gateway: ObjectKey
  readonly listener: string
  readonly route: { readonly kind: RouteKind; readonly key: ObjectKey }
  /** Name of the rule. */
  readonly rule: string | undefined
  /**
   * Kind of the requests of the rule. Policies of other kinds have no effect on it. Undefined without usable
   * backends: a fixed response still applies.
   */
  readonly traffic: BackendTraffic | undefined
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
  /** Called for every accepted place in every pass: statuses report the places. */
  policiesOf(place: PolicyPlace): Effective
  /** Settings of a Gateway as a whole; undefined without any. The same object for the same policies. */
  frontendOf(gateway: ObjectKey): GatewayFrontend | undefined
  /** Of GatewayPolicies; called after the routes are translated. */
  statuses(): readonly ObjectStatus[]
}

export type PoliciesInput = {
  readonly objects: ObjectSet
  readonly references: References
  readonly plans: readonly GatewayPlan[]
}

/** Creates the step that indexes GatewayPolicies by target. It caches the results of a call. */
export function createPolicyIndexer(): (input: PoliciesInput) => PolicyIndex {
  const translate = createCachedTranslation()
  const levelOf = createLevels()
  const frontendAt = createFrontends()
  const root = createNode([])
  return ({ objects, references, plans }) => {
    const context = { objects, plans: new Map(plans.map((plan) => [plan.key, plan])) }
    const targeted = translate(objects, surroundingsOf(objects, references)).map((policy) => ({
      policy,
      targets: targetsOf(policy, context),
    }))
    const owners = levelOf(targeted)
    const seen: SeenPlaces = new Map()
    return {
      policiesOf({ gateway, listener, route, rule, traffic }) {
        const ofGateway = owners.Gateway.get(gateway)
        const ofRoute = isTargetKind(route.kind) ? owners[route.kind].get(route.key) : undefined
        if (ofGateway === undefined && ofRoute === undefined) return noPolicies
        const above = ofGateway === undefined ? root : sectionNode(root, ofGateway, listener)
        const node = ofRoute === undefined ? above : sectionNode(above, ofRoute, rule)
        if (node === root) return noPolicies
        markSeen(seen, node, gateway, traffic)
        return mergedAt(node, traffic ?? 'http')
      },
      frontendOf(gateway) {
        const level = owners.Gateway.get(gateway)?.whole
        return level && frontendAt(level)
      },
      statuses: () => policyStatuses(targeted, { owners, seen }),
    }
  }
}

const noPolicies: Effective = { policies: undefined, backends: [] }

function isTargetKind(kind: RouteKind): kind is 'HTTPRoute' | 'GRPCRoute' {
  return kind === 'HTTPRoute' || kind === 'GRPCRoute'
}

function sectionNode(
  node: PlaceNode,
  { whole, sections }: OwnerLevels,
  section: string | undefined,
): PlaceNode {
  const below = nodeBelow(node, whole)
  return section === undefined ? below : nodeBelow(below, sections.get(section))
}

function markSeen(
  seen: SeenPlaces,
  node: PlaceNode,
  gateway: ObjectKey,
  traffic: BackendTraffic | undefined,
): void {
  const gateways = seen.get(node) ?? new Map<ObjectKey, Set<BackendTraffic>>()
  seen.set(node, gateways)
  const kinds = gateways.get(gateway) ?? new Set<BackendTraffic>()
  gateways.set(gateway, kinds)
  if (traffic !== undefined) kinds.add(traffic)
}

type Source = GatewayPolicy | InvalidObject

type Translated = { readonly policy: TranslatedPolicy; readonly lookups?: RecordedLookups }

function translateSource(source: Source, surroundings: Surroundings): Translated {
  if ('mistakes' in source) return { policy: invalidPolicy(source) }
  const lookups = createLookups(source.metadata.namespace ?? '', surroundings)
  const policy = translatePolicy(source, lookups)
  lookups.complete()
  return { policy, lookups }
}

/** Translates policies, sorted by precedence; unchanged ones once. */
function createCachedTranslation() {
  const known = new WeakMap<Source, Translated>()

  function translated(source: Source, surroundings: Surroundings): TranslatedPolicy {
    const existing = known.get(source)
    if (existing !== undefined && existing.lookups?.isCurrent(surroundings) !== false) return existing.policy
    const created = translateSource(source, surroundings)
    known.set(source, created)
    return created.policy
  }

  return ({ GatewayPolicy: policies, invalid }: ObjectSet, surroundings: Surroundings) => {
    const wrong = [...invalid.values()].filter(({ kind }) => kind === 'GatewayPolicy')
    return [...policies.values(), ...wrong]
      .sort(compareByAge)
      .map((source) => translated(source, surroundings))
  }
}
