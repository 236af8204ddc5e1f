import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { TargetRef } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { GatewayPlan, ListenerPlan } from '../plan.ts'
import type { TranslatedPolicy } from './translate-policy.ts'

export type TargetKind = TargetRef['kind']

/** A target of a policy: an object with an optional section, or the reason against it. */
export type Target = {
  readonly kind: TargetKind
  readonly key: ObjectKey
  readonly section: string | undefined
  /** Undefined if the target exists. */
  readonly missing: string | undefined
  /** Names of the listeners of a Gateway without requests, on which policies have no effect. */
  readonly unaffected: readonly string[]
}

export type TargetContext = {
  readonly objects: ObjectSet
  readonly plans: ReadonlyMap<ObjectKey, GatewayPlan>
}

/** Resolves the targets of a policy, which are in its namespace. Repeated targets count once. */
export function targetsOf(policy: TranslatedPolicy, context: TargetContext): readonly Target[] {
  const { namespace = '' } = policy.metadata
  const found = new Map<string, Target>()
  for (const { kind, name, sectionName } of policy.targetRefs) {
    const place = { kind, key: `${namespace}/${name}`, section: sectionName }
    const id = targetName(place)
    if (found.has(id)) continue
    const unaffected = unaffectedListeners(place, context)
    found.set(id, { ...place, missing: missingTarget(place, context), unaffected })
  }
  return [...found.values()]
}

/** `<kind>/<namespace>/<name>`, with `/<section>`. */
export function targetName({ kind, key, section }: Place): string {
  return section === undefined ? `${kind}/${key}` : `${kind}/${key}/${section}`
}

type Place = Pick<Target, 'kind' | 'key' | 'section'>

/** Connections of TCPRoutes and TLSRoutes have no requests. */
function unaffectedListeners({ kind, key, section }: Place, { plans }: TargetContext): readonly string[] {
  const plan = kind === 'Gateway' && section === undefined ? plans.get(key) : undefined
  return plan?.listeners.filter(hasNoRequests).map(({ name }) => name) ?? []
}

function hasNoRequests({ protocol }: ListenerPlan): boolean {
  return protocol === 'TCP' || protocol === 'TLS'
}

function missingTarget({ kind, key, section }: Place, { objects, plans }: TargetContext): string | undefined {
  if (kind !== 'Gateway') {
    const route = objects[kind].get(key)
    if (route === undefined) return `${kind} ${key} is not found`
    const { rules = [] } = route.spec
    const names: readonly { readonly name?: string | undefined }[] = rules
    if (section === undefined || names.some(({ name }) => name === section)) return undefined
    return `${kind} ${key} has no rule named ${section}`
  }
  const plan = plans.get(key)
  if (plan === undefined) {
    return objects.Gateway.has(key)
      ? `Gateway ${key} belongs to another controller`
      : `Gateway ${key} is not found`
  }
  if (section === undefined) return undefined
  const listener = plan.listeners.find(({ name }) => name === section)
  if (listener !== undefined)
    return hasNoRequests(listener)
      ? `listener ${section} of Gateway ${key} must have protocol HTTP or HTTPS: policies have no effect on ${listener.protocol} connections`
      : undefined
  return `Gateway ${key} has no listener named ${section}`
}
