import { keyOf } from '../../objects/meta.ts'
import type { InvalidObject } from '../../objects/object-set.ts'
import type { TargetRef } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { TargetKind } from './targets.ts'
import type { TranslatedPolicy } from './translate-policy.ts'

/** A policy that violates its schema, with those targets that are readable. They refuse requests. */
export function invalidPolicy({ metadata, mistakes, spec }: InvalidObject): TranslatedPolicy {
  const refs = memberOf(spec, 'targetRefs')
  // Also those beyond the limit of the schema: they refuse requests too.
  const targetRefs = Array.isArray(refs) ? refs.flatMap(readTarget) : []
  return { key: keyOf({ metadata }), metadata, targetRefs, fields: [], mistakes, isInvalid: true }
}

const kinds: readonly TargetKind[] = ['Gateway', 'HTTPRoute', 'GRPCRoute']

/** Reads a target; one with an unusable section counts as the whole object. */
function readTarget(value: unknown): TargetRef[] {
  const kind = kinds.find((each) => each === memberOf(value, 'kind'))
  const name = memberOf(value, 'name')
  const section = memberOf(value, 'sectionName')
  if (kind === undefined || typeof name !== 'string' || name === '') return []
  const sectionName = typeof section === 'string' && section !== '' ? { sectionName: section } : {}
  return [{ group: 'gateway.networking.k8s.io', kind, name, ...sectionName }]
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined
}
