import type { PolicyField, TranslatedPolicy } from './translate-policy.ts'

/**
 * The policies of one target: a Gateway, a listener, a route or a rule. Of several policies with one field,
 * the first by age and name applies.
 */
export type Level = {
  /** `<kind>/<namespace>/<name>`, with `/<section>`. */
  readonly target: string
  /** Sorted by age, then by name. */
  readonly policies: readonly TranslatedPolicy[]
  /** The applied fields by path. */
  readonly fields: ReadonlyMap<string, AppliedField>
  /** Fields that other policies of the target override. */
  readonly overridden: readonly OverriddenField[]
  /** Whether a policy violates its schema. */
  readonly isInvalid: boolean
}

export type AppliedField = {
  readonly target: string
  readonly policy: TranslatedPolicy
  readonly field: PolicyField
}

export type OverriddenField = AppliedField & { readonly by: TranslatedPolicy }

/** Selects the fields of a target. `policies` are sorted by precedence. */
export function createLevel(target: string, policies: readonly TranslatedPolicy[]): Level {
  const fields = new Map<string, AppliedField>()
  const overridden: OverriddenField[] = []
  for (const policy of policies) {
    for (const field of policy.fields) {
      const { path } = field.kind
      const applied = fields.get(path)
      if (applied === undefined) fields.set(path, { target, policy, field })
      else overridden.push({ target, policy, field, by: applied.policy })
    }
  }
  return { target, policies, fields, overridden, isInvalid: policies.some(({ isInvalid }) => isInvalid) }
}
