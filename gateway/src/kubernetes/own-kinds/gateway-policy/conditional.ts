import { anyOfShapes, cel, type FieldMeta, list, object, optional, type Schema } from '../../../schema/dsl.ts'

/** A policy, or several policies with conditions. */
export type MaybeConditional<Policy extends object> = Policy | Conditional<Policy>

export type Conditional<Policy extends object> = {
  readonly conditional: readonly { readonly condition?: string | undefined; readonly policy: Policy }[]
}

const maxEntries = 16

const condition = optional(
  cel({
    doc: 'Expression that selects the entry. An entry without one is last and matches every request. A failed evaluation does not match.',
    example: 'request.path.startsWith("/admin/")',
  }),
)

/** Schema of a policy, or of a list of policies with conditions in its place. */
export function orConditional<Policy extends object>(
  policy: Schema<Policy>,
  meta: FieldMeta,
): Schema<MaybeConditional<Policy>> {
  const entry = object({ condition, policy }, { doc: 'Policy with a condition.' })
  return anyOfShapes(
    [
      policy,
      object(
        {
          conditional: list(
            entry,
            { doc: 'Entries in place of all other fields; the first one whose condition is true applies.' },
            { min: 1, max: maxEntries },
          ),
        },
        { doc: 'One of several policies, selected by conditions on the request.' },
      ),
    ],
    meta,
  ) as Schema<MaybeConditional<Policy>>
}

/** Whether a policy consists of entries with conditions. */
export function isConditional<Policy extends object>(
  written: MaybeConditional<Policy>,
): written is Conditional<Policy> {
  return 'conditional' in written
}
