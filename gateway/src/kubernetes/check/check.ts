import type { ParentReference } from '../objects/gateway-api.ts'
import type { ReadKind } from '../objects/kinds.ts'
import type { Manifests } from '../objects/manifests/manifests.ts'
import type { Place } from '../objects/manifests/parse-manifest.ts'
import type { ObjectKey } from '../objects/meta.ts'
import type { ObjectSet } from '../objects/object-set.ts'
import type { ConditionState, ObjectStatus } from '../translate/status/object-status.ts'
import type { Translation } from '../translate/translate.ts'

/** A condition of an object or of a part of its status. */
export type CheckedCondition = ConditionState & {
  /** `listener <name>`, `parent <kind>/<key>`; empty for the object. */
  readonly of: string
}

/** The expected status of an object of manifests. */
export type CheckedObject = {
  readonly kind: ReadKind
  readonly key: ObjectKey
  readonly place: Place | undefined
  /**
   * `refused`: a condition reports an error. `detached`: the object has no effect. `foreign`: it belongs to
   * another controller.
   */
  readonly outcome: 'accepted' | 'refused' | 'detached' | 'foreign'
  readonly conditions: readonly CheckedCondition[]
  /** Mistakes of an object that violates the schema of its kind. */
  readonly mistakes: readonly string[]
}

/**
 * Returns the expected status of each object that has one, sorted by kind and key. Objects without a status,
 * such as Services, are included only if they violate their schema.
 */
export function checkObjects({ objects, places }: Manifests, translation: Translation): CheckedObject[] {
  const statuses = new Map(translation.statuses.map((status) => [`${status.kind}/${status.key}`, status]))
  const found: CheckedObject[] = []
  for (const kind of kindsWithStatus) {
    for (const key of objects[kind].keys()) {
      const id = `${kind}/${key}`
      const conditions = conditionsIn(statuses.get(id))
      const outcome = outcomeOf({ kind, key, conditions }, objects, translation.gateways)
      found.push({ kind, key, place: places.get(id), outcome, conditions, mistakes: [] })
    }
  }
  for (const [id, { kind, mistakes }] of objects.invalid) {
    const key = id.slice(kind.length + 1)
    const conditions = conditionsIn(statuses.get(id))
    found.push({ kind, key, place: places.get(id), outcome: 'refused', conditions, mistakes })
  }
  return found.sort((a, b) => compare(a.kind, b.kind) || compare(a.key, b.key))
}

const kindsWithStatus = [
  'GatewayClass',
  'Gateway',
  'HTTPRoute',
  'GRPCRoute',
  'TLSRoute',
  'TCPRoute',
  'BackendTLSPolicy',
  'GatewayPolicy',
  'GatewayParameters',
  'GatewayBackend',
] as const satisfies readonly ReadKind[]

type KindWithStatus = (typeof kindsWithStatus)[number]

function conditionsIn(status: ObjectStatus | undefined): CheckedCondition[] {
  if (status === undefined) return []
  switch (status.of) {
    case 'conditions':
      return conditionsOf('', status.status.conditions)
    case 'gateway': {
      const { conditions, listeners = [] } = status.status
      return [
        ...conditionsOf('', conditions),
        ...listeners.flatMap((listener) => conditionsOf(`listener ${listener.name}`, listener.conditions)),
      ]
    }
    case 'route':
      return status.status.parents.flatMap(({ parentRef, conditions }) =>
        conditionsOf(`parent ${nameOf(parentRef)}`, conditions),
      )
    case 'policy':
      return status.status.ancestors.flatMap(({ ancestorRef, conditions }) =>
        conditionsOf(`target ${nameOf(ancestorRef)}`, conditions),
      )
  }
}

function conditionsOf(of: string, conditions: readonly ConditionState[] | undefined): CheckedCondition[] {
  return (conditions ?? []).map((condition) => ({ of, ...condition }))
}

function nameOf(reference: ParentReference): string {
  const { kind = 'Gateway', namespace, name, sectionName, port } = reference
  const owner = `${kind}/${namespace === undefined ? '' : `${namespace}/`}${name}`
  return [owner, sectionName, port].filter((part) => part !== undefined).join('/')
}

/** Conditions that report an error when they are true. */
const negative: ReadonlySet<string> = new Set(['Conflicted', 'PartiallyInvalid'])
/** Conditions that report a fact, not an error. */
const informative: ReadonlySet<string> = new Set(['Overridden', 'OverlappingTLSConfig'])

/** Whether a condition reports an error. */
export function isViolated({ type, status }: ConditionState): boolean {
  if (negative.has(type)) return status === 'True'
  return status === 'False' && !informative.has(type) && !type.startsWith('Insecure')
}

type Subject = { kind: KindWithStatus; key: ObjectKey; conditions: readonly ConditionState[] }

function outcomeOf(
  { kind, key, conditions }: Subject,
  objects: ObjectSet,
  own: Translation['gateways'],
): CheckedObject['outcome'] {
  if (conditions.some(isViolated)) return 'refused'
  if (conditions.length > 0) return 'accepted'
  return isForeign(kind, key, { objects, own }) ? 'foreign' : effectWithoutStatus(kind)
}

/** Parameters, and policies and backends that nothing uses, have no conditions. */
function effectWithoutStatus(kind: KindWithStatus): 'accepted' | 'detached' {
  return kind === 'GatewayParameters' || kind === 'GatewayBackend' ? 'accepted' : 'detached'
}

/** Whether an object belongs to Gateways of other controllers, which are in the manifests. */
function isForeign(
  kind: KindWithStatus,
  key: ObjectKey,
  place: { objects: ObjectSet; own: Translation['gateways'] },
): boolean {
  const { objects, own } = place
  switch (kind) {
    case 'GatewayClass':
      return true
    case 'Gateway':
      return !own.has(key) && objects.GatewayClass.has(objects.Gateway.get(key)?.spec.gatewayClassName ?? '')
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
    case 'TCPRoute': {
      const route = objects[kind].get(key)
      const parents = route?.spec.parentRefs ?? []
      const isElsewhere = ({ kind: parent = 'Gateway', namespace, name }: ParentReference) => {
        const gateway = `${namespace ?? route?.metadata.namespace}/${name}`
        return parent !== 'Gateway' || (objects.Gateway.has(gateway) && isForeign('Gateway', gateway, place))
      }
      return parents.length > 0 && parents.every(isElsewhere)
    }
    default:
      return false
  }
}

function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

/** Mistakes of an object that no condition reports. */
export function mistakesOf({
  conditions,
  mistakes,
}: Pick<CheckedObject, 'conditions' | 'mistakes'>): string[] {
  return mistakes.filter((mistake) => conditions.every(({ message }) => !message.includes(mistake)))
}
