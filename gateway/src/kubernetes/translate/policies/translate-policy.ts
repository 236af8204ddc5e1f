import { validatePart } from '../../../config/load/validate.ts'
import { formatPath, type Path } from '../../../schema/path.ts'
import type { ObjectMeta } from '../../objects/meta.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { GatewayPolicy, TargetRef } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { BackendTraffic, FrontendPolicies, RoutePolicies } from '../plan.ts'
import { mergeAi } from './fields/ai.ts'
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
  const fields: PolicyField[] = []
  const areValid = createJointCheck(fields)
  for (const kind of fieldKinds) {
    const field = kind.translate(spec, lookups)
    if (field === undefined) continue
    const { frontend } = field
    fields.push(
      frontend === undefined ? createField(kind, field, areValid) : createGatewayField(kind, field, frontend),
    )
  }
  const mistakes = fields.length === 0 ? ['spec: must have a field in frontend, traffic or backend'] : []
  return {
    key: keyOf({ metadata }),
    metadata,
    targetRefs: spec.targetRefs,
    fields,
    mistakes,
    isInvalid: false,
  }
}

/** Creates a check of all fields at once: single fields are validated only for the paths of mistakes. */
function createJointCheck(fields: readonly PolicyField[]): (traffic: BackendTraffic) => boolean {
  const results = new Map<BackendTraffic, boolean>()
  return (traffic) => {
    const known = results.get(traffic)
    if (known !== undefined) return known
    const isValid =
      fields.every(({ field }) => field.frontend !== undefined || field.mistakes.length === 0) &&
      issuesOf(jointField(fields, traffic), traffic).length === 0
    results.set(traffic, isValid)
    return isValid
  }
}

type Validated = Pick<Field, 'policies' | 'backends'>

function jointField(fields: readonly PolicyField[], traffic: BackendTraffic): Validated {
  const parts = fields.map((field) => field.policiesFor(traffic) ?? {})
  const ai = mergeAi(parts.flatMap((part) => part.ai ?? []))
  return {
    policies: { ...Object.assign({}, ...parts), ...(ai && { ai }) },
    backends: fields.flatMap(({ field }) => field.backends),
  }
}

function createField(
  kind: FieldKind,
  field: Field,
  areValid: (traffic: BackendTraffic) => boolean,
): PolicyField {
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
      const policies = policiesFor(traffic)
      if (policies === undefined || areValid(traffic)) return []
      const found = results.get(traffic) ?? mistakesOf(field, policies, traffic)
      results.set(traffic, found)
      return found
    },
  }
}

/** A field of a Gateway as a whole has no part in the policies of routes. */
function createGatewayField(kind: FieldKind, field: Field, frontend: FrontendPolicies): PolicyField {
  let known: readonly string[] | undefined
  return {
    kind,
    field,
    policiesFor: () => undefined,
    mistakesFor() {
      known ??= frontendMistakes(field, frontend)
      return known
    },
  }
}

function frontendMistakes(field: Field, value: FrontendPolicies): readonly string[] {
  const own = ownMistakes(field)
  if (own.length > 0) return own
  const backends = field.backends.map((name) => ({ name, endpoints: [] }))
  return validatePart({ kind: 'frontendPolicies', value }, { backends }).map(
    ({ path, message }) => `spec.${formatPath(field.written(path))}: ${message}`,
  )
}

function ownMistakes({ mistakes }: Field): string[] {
  return mistakes.map(({ path, message }) => `spec.${formatPath(path)}: ${message}`)
}

function mistakesOf(field: Field, policies: RoutePolicies, traffic: BackendTraffic): string[] {
  const own = ownMistakes(field)
  if (own.length > 0) return own
  return issuesOf({ policies, backends: field.backends }, traffic).map(
    ({ path, message }) => `spec.${formatPath(field.written(path))}: ${message}`,
  )
}

function issuesOf({ policies, backends }: Validated, traffic: BackendTraffic) {
  const surroundings = { backends: backends.map((name) => ({ name, endpoints: [] })) }
  const issues = validatePart({ kind: 'policies', of: traffic, value: policies }, surroundings)
  return issues.filter(({ path }) => !isAboutBackends(path))
}

/** A part is validated with a backend, which routes with a fixed response do not have. */
function isAboutBackends(path: Path): boolean {
  return path.length === 1 && path[0] === 'directResponse'
}
