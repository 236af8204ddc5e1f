import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { TargetRef } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { GatewayPlan } from '../plan.ts'
import type { TranslatedPolicy } from './translate-policy.ts'

export type TargetKind = TargetRef['kind']

/** A target of a policy: an object with an optional section, or the reason against it. */
export type Target = {
  readonly kind: TargetKind
  readonly key: ObjectKey
  readonly section: string | undefined
  /** Undefined if the target exists. */
  readonly missing: string | undefined
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
    if (!found.has(id)) found.set(id, { ...place, missing: missingTarget(place, context) })
  }
  return [...found.values()]
}

/** `<kind>/<namespace>/<name>`, with `/<section>`. */
export function targetName({ kind, key, section }: Pick<Target, 'kind' | 'key' | 'section'>): string {
  return section === undefined ? `${kind}/${key}` : `${kind}/${key}/${section}`
}

function missingTarget(
  { kind, key, section }: Omit<Target, 'missing'>,
  { objects, plans }: TargetContext,
): string | undefined {
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
  if (section === undefined || plan.listeners.some(({ name }) => name === section)) return undefined
  return `Gateway ${key} has no listener named ${section}`
}
