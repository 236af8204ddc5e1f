import type { ParentReference } from '../../objects/gateway-api.ts'
import { gatewayApiGroup, ownGroup } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import { controllerName } from '../controller-name.ts'
import type { BackendTraffic } from '../plan.ts'
import { conditionsOf, type Finding, satisfied, violated } from '../status/conditions.ts'
import type { ConditionState, ObjectStatus } from '../status/object-status.ts'
import type { Level, OverriddenField } from './levels.ts'
import { levelAt, type Owners, type TargetedPolicy } from './levels-by-target.ts'
import { mergedAt, type PlaceNode } from './place-tree.ts'
import type { Target } from './targets.ts'
import type { PolicyField, TranslatedPolicy } from './translate-policy.ts'

/** Kinds of traffic of accepted rules by node and Gateway. */
export type SeenPlaces = Map<PlaceNode, Map<ObjectKey, Set<BackendTraffic>>>

export type StatusContext = { readonly owners: Owners; readonly seen: SeenPlaces }

/** Kinds of traffic by level and Gateway, and contradictions by policy. */
type Uses = {
  readonly traffic: ReadonlyMap<Level, ReadonlyMap<ObjectKey, ReadonlySet<BackendTraffic>>>
  readonly contradictions: ReadonlyMap<TranslatedPolicy, ReadonlySet<string>>
  /** Policies with a mistake that makes rules refuse requests. */
  readonly refusing: ReadonlySet<TranslatedPolicy>
}

/** Creates the statuses of policies. */
export function policyStatuses(
  targeted: readonly TargetedPolicy[],
  { owners, seen }: StatusContext,
): readonly ObjectStatus[] {
  const uses = usesOf(seen)
  return targeted.map(({ policy, targets }): ObjectStatus => {
    const placed = targets.map((target) => placedTarget(target, owners, uses))
    const common = [accepted(policy, placed, uses), resolvedRefs(policy)]
    const ancestors = [...byAncestor(placed)].map(([, { ref, targets: own }]) => ({
      ancestorRef: ref,
      controllerName,
      conditions: conditionsOf(policy, [...common, ...attached(policy, own)]),
    }))
    return {
      kind: 'GatewayPolicy',
      key: policy.key,
      of: 'policy',
      status: {
        ancestors: ancestors.length === 0 ? [withoutTarget(policy, common)] : bounded(policy, ancestors),
      },
    }
  })
}

function usesOf(seen: SeenPlaces): Uses {
  const traffic = new Map<Level, Map<ObjectKey, Set<BackendTraffic>>>()
  const contradictions = new Map<TranslatedPolicy, Set<string>>()
  const refusing = new Set<TranslatedPolicy>()
  for (const [node, gateways] of seen) {
    for (const [gateway, kinds] of gateways) {
      for (const level of node.levels) {
        const ofLevel = traffic.get(level) ?? new Map<ObjectKey, Set<BackendTraffic>>()
        traffic.set(level, ofLevel)
        ofLevel.set(gateway, new Set([...(ofLevel.get(gateway) ?? []), ...kinds]))
      }
      for (const kind of kinds) {
        for (const { field, message } of mergedAt(node, kind).contradicting) {
          const messages = contradictions.get(field.policy) ?? new Set<string>()
          contradictions.set(field.policy, messages.add(message))
          refusing.add(field.policy)
        }
        for (const policy of mistakenPolicies(node, kind)) refusing.add(policy)
      }
    }
  }
  return { traffic, contradictions, refusing }
}

/** The policies whose mistakes apply at a place. */
function mistakenPolicies(node: PlaceNode, kind: BackendTraffic): TranslatedPolicy[] {
  const merged = mergedAt(node, kind)
  if (merged.denied === undefined) return []
  const applied = merged.applied.filter(({ field }) => field.mistakesFor(merged.traffic).length > 0)
  const invalid = node.levels.flatMap(({ policies }) => policies.filter(({ isInvalid }) => isInvalid))
  return [...applied.map(({ policy }) => policy), ...invalid]
}

/** A target with the Gateways whose routes it affects. */
type PlacedTarget = Target & {
  readonly level: Level | undefined
  /** Kinds of traffic by Gateway. */
  readonly traffic: ReadonlyMap<ObjectKey, ReadonlySet<BackendTraffic>>
}

function placedTarget(target: Target, owners: Owners, uses: Uses): PlacedTarget {
  const level = target.missing === undefined ? levelAt(owners, target) : undefined
  return { ...target, level, traffic: (level && uses.traffic.get(level)) ?? new Map() }
}

type Ancestor = { readonly ref: ParentReference; readonly targets: AncestorTarget[] }
type AncestorTarget = PlacedTarget & {
  /** Kinds of traffic of the target at this ancestor; undefined if it is not attached to a Gateway. */
  readonly kinds: ReadonlySet<BackendTraffic> | undefined
}

/** Groups targets by Gateway; a route without a Gateway is its own ancestor. Sorted by reference. */
function byAncestor(placed: readonly PlacedTarget[]): Map<string, Ancestor> {
  const found = new Map<string, Ancestor>()
  const add = (kind: Target['kind'], key: ObjectKey, target: AncestorTarget) => {
    const id = `${kind}/${key}`
    const ancestor = found.get(id) ?? { ref: referenceOf(kind, key), targets: [] }
    ancestor.targets.push(target)
    found.set(id, ancestor)
  }
  for (const target of placed) {
    if (target.kind === 'Gateway') {
      const kinds = target.traffic.get(target.key) ?? new Set<BackendTraffic>()
      add('Gateway', target.key, { ...target, kinds })
    } else if (target.traffic.size === 0) add(target.kind, target.key, { ...target, kinds: undefined })
    for (const [gateway, kinds] of target.kind === 'Gateway' ? [] : target.traffic)
      add('Gateway', gateway, { ...target, kinds })
  }
  return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
}

function referenceOf(kind: Target['kind'], key: ObjectKey): ParentReference {
  const [namespace = '', name = ''] = key.split('/')
  return { group: gatewayApiGroup, kind, namespace, name }
}

function accepted(policy: TranslatedPolicy, placed: readonly PlacedTarget[], uses: Uses): Finding {
  const mistakes = new Set<string>(policy.mistakes)
  for (const field of policy.fields) {
    for (const mistake of mistakesAt(field, kindsAt(field, policy, placed))) mistakes.add(mistake)
  }
  for (const message of uses.contradictions.get(policy) ?? []) mistakes.add(message)
  if (mistakes.size === 0) return satisfied('Accepted', 'Accepted')
  const effect = uses.refusing.has(policy) ? '; affected rules answer 500' : ''
  return violated('Accepted', 'Invalid', `${[...mistakes].sort().join('; ')}${effect}`)
}

/**
 * The mistakes of a field at its places, or without places those on LLM routes, which have the most
 * variables. A mistake on other routes only names their kind.
 */
function mistakesAt(field: PolicyField, kinds: readonly BackendTraffic[]): string[] {
  const { traffic } = field.kind
  const base = traffic.includes('llm') ? 'llm' : (traffic[0] ?? 'http')
  if (kinds.length === 0) return [...field.mistakesFor(base)]
  return kinds.flatMap((kind) =>
    field
      .mistakesFor(kind)
      .map((mistake) =>
        field.mistakesFor(base).includes(mistake) ? mistake : `${mistake} (on ${kind} routes)`,
      ),
  )
}

/** Kinds of traffic of the places at which a field of a policy applies. */
function kindsAt(field: PolicyField, policy: TranslatedPolicy, placed: readonly PlacedTarget[]) {
  const kinds = new Set<BackendTraffic>()
  for (const { level, traffic } of placed) {
    if (level?.fields.get(field.kind.path)?.policy !== policy) continue
    for (const each of traffic.values()) for (const kind of each) kinds.add(kind)
  }
  return [...kinds].sort()
}

function resolvedRefs({ fields }: TranslatedPolicy): Finding {
  const unresolved = fields.flatMap(({ field }) => field.unresolved)
  const [first] = unresolved
  if (first === undefined) return satisfied('ResolvedRefs', 'ResolvedRefs')
  return violated('ResolvedRefs', first.reason, unresolved.map(({ message }) => `spec.${message}`).join('; '))
}

function attached(policy: TranslatedPolicy, targets: readonly AncestorTarget[]): Finding[] {
  const missing = targets.flatMap(({ missing: message }) => message ?? [])
  const present = targets.filter(({ missing: message }) => message === undefined)
  const lost = present.flatMap(
    ({ level }) => level?.overridden.filter((each) => each.policy === policy) ?? [],
  )
  const total = present.length * policy.fields.length
  const overridden = lost.length === 0 ? [] : [overriddenFinding(lost, total)]
  if (missing.length > 0) return [violated('Attached', 'TargetNotFound', missing.join('; ')), ...overridden]
  const pending = present.filter(({ kinds }) => kinds === undefined)
  if (pending.length > 0) {
    const names = pending.map(({ kind, key }) => `${kind} ${key} is not attached to a Gateway`)
    return [violated('Attached', 'Pending', [...new Set(names)].join('; ')), ...overridden]
  }
  if (lost.length > 0 && lost.length === total)
    return [violated('Attached', 'Overridden', describeLost(lost)), ...overridden]
  const notes = [...unaffectedNotes(present), ...withoutEffect(policy, present)]
  return [satisfied('Attached', 'Attached', notes.join('; ')), ...overridden]
}

function overriddenFinding(lost: readonly OverriddenField[], total: number): Finding {
  const reason = lost.length === total ? 'Overridden' : 'PartiallyOverridden'
  return satisfied('Overridden', reason, describeLost(lost))
}

function describeLost(lost: readonly OverriddenField[]): string {
  return lost
    .map(({ field, by, target }) => `spec.${field.kind.path}: policy ${by.key} takes precedence on ${target}`)
    .sort()
    .join('; ')
}

const namesOfTraffic = { http: 'HTTP', llm: 'LLM', mcp: 'MCP' } as const

/** Names listeners that a policy of their Gateway does not protect. */
function unaffectedNotes(targets: readonly AncestorTarget[]): string[] {
  return targets.flatMap(({ key, unaffected }) =>
    unaffected.length === 0
      ? []
      : [`no effect on connections of listeners ${unaffected.join(', ')} of Gateway ${key}`],
  )
}

/** Names fields for kinds of traffic that no rule of the targets has. */
function withoutEffect(policy: TranslatedPolicy, targets: readonly AncestorTarget[]): string[] {
  const kinds = new Set(targets.flatMap(({ kinds: own }) => [...(own ?? [])]))
  if (kinds.size === 0) return []
  const unused = policy.fields.filter(
    (field) =>
      field.kind.isOfGateway !== true && [...kinds].every((kind) => field.policiesFor(kind) === undefined),
  )
  return unused.map((field) => {
    const needed = field.kind.traffic.filter((kind) => field.policiesFor(kind) !== undefined)
    const names = needed.map((kind) => namesOfTraffic[kind]).join(' or ')
    return `spec.${field.kind.path} has no effect: no attached rule has ${names} traffic`
  })
}

type AncestorStatus = {
  readonly ancestorRef: ParentReference
  readonly controllerName: string
  readonly conditions: readonly ConditionState[]
}

/** The entry of a policy without readable targets. */
function withoutTarget(policy: TranslatedPolicy, findings: readonly Finding[]): AncestorStatus {
  const { namespace, name } = policy.metadata
  return {
    ancestorRef: { group: ownGroup, kind: 'GatewayPolicy', namespace, name },
    controllerName,
    conditions: conditionsOf(policy, [
      ...findings,
      violated('Attached', 'TargetNotFound', 'the policy has no valid target'),
    ]),
  }
}

/** The limit of the API. */
const maxAncestors = 16

/** Replaces the ancestors beyond the limit by a summary. */
function bounded(policy: TranslatedPolicy, ancestors: readonly AncestorStatus[]): readonly AncestorStatus[] {
  if (ancestors.length <= maxAncestors) return ancestors
  const kept = ancestors.slice(0, maxAncestors - 1)
  const others = ancestors.slice(maxAncestors - 1)
  const failed = others.filter(({ conditions }) =>
    conditions.some(({ type, status }) => type === 'Attached' && status === 'False'),
  )
  const message = `${others.length} further ancestors, of which ${failed.length} are not attached`
  return [
    ...kept,
    {
      ancestorRef: { group: ownGroup, kind: 'GatewayPolicy', name: 'status-summary' },
      controllerName,
      conditions: conditionsOf(policy, [satisfied('StatusSummarized', 'StatusSummarized', message)]),
    },
  ]
}
