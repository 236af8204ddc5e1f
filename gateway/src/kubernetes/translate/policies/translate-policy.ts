import { validatePart } from '../../../config/load/validate.ts'
import { formatPath, type Path } from '../../../schema/path.ts'
import type { ObjectMeta } from '../../objects/meta.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { GatewayPolicy, TargetRef } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { BackendTraffic, RoutePolicies } from '../plan.ts'
import type { Field, FieldKind } from './fields/field.ts'
import { fieldKinds } from './fields/fields.ts'
import type { Lookups } from './lookups.ts'

/** A GatewayPolicy as policies of routes. */
export type TranslatedPolicy = {
  readonly key: ObjectKey
  readonly metadata: ObjectMeta
  readonly targetRefs: readonly TargetRef[]
  readonly fields: readonly PolicyField[]
  /** Mistakes of the whole policy: its targets refuse requests. */
  readonly mistakes: readonly string[]
  /** Whether the object violates its schema. */
  readonly isInvalid: boolean
}

export type PolicyField = {
  readonly kind: FieldKind
  readonly field: Field
  /** The policies for a kind of traffic; undefined if there are none. */
  policiesFor(traffic: BackendTraffic): RoutePolicies | undefined
  /** Mistakes on routes of a kind of traffic, in one line each. */
  mistakesFor(traffic: BackendTraffic): readonly string[]
}

/** Translates the fields of a policy. Its fields are validated on first use. */
export function translatePolicy({ metadata, spec }: GatewayPolicy, lookups: Lookups): TranslatedPolicy {
  const fields = fieldKinds.flatMap((kind) => {
    const field = kind.translate(spec, lookups)
    return field === undefined ? [] : [createField(kind, field)]
  })
  const mistakes = fields.length === 0 ? ['spec: must have a field in traffic or backend'] : []
  return {
    key: keyOf({ metadata }),
    metadata,
    targetRefs: spec.targetRefs,
    fields,
    mistakes,
    isInvalid: false,
  }
}

function createField(kind: FieldKind, field: Field): PolicyField {
  const results = new Map<BackendTraffic, readonly string[]>()
  const policiesFor = (traffic: BackendTraffic): RoutePolicies | undefined => {
    if (!kind.traffic.includes(traffic)) return undefined
    return kind.partFor === undefined ? field.policies : kind.partFor(field.policies, traffic)
  }
  return {
    kind,
    field,
    policiesFor,
    mistakesFor(traffic) {
      const known = results.get(traffic)
      if (known !== undefined) return known
      const policies = policiesFor(traffic)
      const found = policies === undefined ? [] : validate(field, policies, traffic)
      results.set(traffic, found)
      return found
    },
  }
}

function validate(field: Field, policies: RoutePolicies, traffic: BackendTraffic): string[] {
  const own = field.mistakes.map(({ path, message }) => `spec.${formatPath(path)}: ${message}`)
  if (own.length > 0) return own
  const backends = field.backends.map((name) => ({ name, endpoints: [] }))
  const issues = validatePart({ kind: 'policies', of: traffic, value: policies }, { backends })
  return issues
    .filter(({ path }) => !isAboutBackends(path))
    .map(({ path, message }) => `spec.${formatPath(field.written(path))}: ${message}`)
}

/** A part is validated with a backend, which routes with a fixed response do not have. */
function isAboutBackends(path: Path): boolean {
  return path.length === 1 && path[0] === 'directResponse'
}
