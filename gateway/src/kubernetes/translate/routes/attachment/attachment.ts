import { attachedHostnames } from '../../../../pipeline/routing/hostnames.ts'
import type { ParentReference } from '../../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../../objects/kinds.ts'
import type { ObjectKey, ObjectMeta } from '../../../objects/meta.ts'
import type { GatewayPlan, ListenerPlan, RouteKind } from '../../plan.ts'

/** A route, reduced to the fields that decide about its attachment. */
export type AttachingRoute = {
  readonly kind: RouteKind
  readonly metadata: ObjectMeta
  readonly spec: {
    readonly parentRefs?: readonly ParentReference[] | undefined
    readonly hostnames?: readonly string[] | undefined
  }
}

/** A reference of a route to a Gateway of this controller. */
export type Attachment = {
  readonly parentRef: ParentReference
  readonly gateway: ObjectKey
  /** Listeners that accept the route; empty with a refusal. */
  readonly listeners: readonly ListenerPlan[]
  readonly refusal: Refusal | undefined
}

export type Refusal = {
  /** Reason of the condition Accepted. */
  readonly reason:
    | 'NoMatchingParent'
    | 'NotAllowedByListeners'
    | 'NoMatchingListenerHostname'
    | 'HostnameConflict'
  readonly message: string
}

/** A reference to a Gateway, of this or another controller. */
export type Parent = { readonly parentRef: ParentReference; readonly gateway: ObjectKey }

/** The distinct references of a route to Gateways. Parents of other kinds are left out. */
export function parentsOf({ metadata, spec }: AttachingRoute): readonly Parent[] {
  const parents = new Map<string, Parent>()
  for (const parentRef of spec.parentRefs ?? []) {
    const { group = gatewayApiGroup, kind = 'Gateway', name, sectionName = '', port = '' } = parentRef
    if (group !== gatewayApiGroup || kind !== 'Gateway') continue
    const gateway = `${parentRef.namespace ?? metadata.namespace}/${name}`
    const identity = `${gateway} ${sectionName} ${port}`
    if (!parents.has(identity)) parents.set(identity, { parentRef, gateway })
  }
  return [...parents.values()]
}

/** Finds the listeners of a route. Gateways of other controllers are left out. */
export function attach(
  route: AttachingRoute,
  parents: readonly Parent[],
  plans: ReadonlyMap<ObjectKey, GatewayPlan>,
): readonly Attachment[] {
  let attachments: readonly Attachment[] = []
  for (const { parentRef, gateway } of parents) {
    const plan = plans.get(gateway)
    if (plan !== undefined) attachments = [...attachments, attachTo(plan, parentRef, route)]
  }
  return attachments
}

function attachTo(plan: GatewayPlan, parentRef: ParentReference, route: AttachingRoute): Attachment {
  const { kind, metadata, spec } = route
  const { sectionName, port } = parentRef
  const refused = (reason: Refusal['reason'], message: string): Attachment => {
    return { parentRef, gateway: plan.key, listeners: [], refusal: { reason, message } }
  }
  const selected = plan.listeners.filter(
    (listener) =>
      (sectionName === undefined || listener.name === sectionName) &&
      (port === undefined || listener.port === port),
  )
  if (selected.length === 0) {
    const wanted = [
      ...(sectionName === undefined ? [] : [`the name ${sectionName}`]),
      ...(port === undefined ? [] : [`port ${port}`]),
    ]
    return refused(
      'NoMatchingParent',
      `Gateway ${plan.key} has no listener${wanted.length === 0 ? '' : ` with ${wanted.join(' and ')}`}`,
    )
  }
  const ofKind = selected.filter(({ kinds }) => kinds.includes(kind))
  if (ofKind.length === 0) {
    return refused('NotAllowedByListeners', `${namesOf(selected)} of Gateway ${plan.key} must permit ${kind}`)
  }
  const namespace = metadata.namespace ?? ''
  const permitted = ofKind.filter(({ allowsNamespace }) => allowsNamespace(namespace))
  if (permitted.length === 0) {
    return refused(
      'NotAllowedByListeners',
      `${namesOf(ofKind)} of Gateway ${plan.key} must permit routes of namespace ${namespace}`,
    )
  }
  const { hostnames = [] } = spec
  const listeners =
    kind === 'TCPRoute' || hostnames.length === 0
      ? permitted
      : permitted.filter(({ hostname }) => attachedHostnames(hostname, hostnames) !== undefined)
  if (listeners.length > 0) return { parentRef, gateway: plan.key, listeners, refusal: undefined }
  const hosts = permitted.map(({ name, hostname }) => `${name} is for ${hostname ?? 'all'}`)
  return refused(
    'NoMatchingListenerHostname',
    `hostnames must match a listener of Gateway ${plan.key}: ${hosts.join(', ')}`,
  )
}

function namesOf(listeners: readonly ListenerPlan[]): string {
  const names = listeners.map(({ name }) => name).join(', ')
  return listeners.length === 1 ? `listener ${names}` : `listeners ${names}`
}
