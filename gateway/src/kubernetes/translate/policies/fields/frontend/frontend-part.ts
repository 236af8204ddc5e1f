import type { Path } from '../../../../../schema/path.ts'
import type { FrontendPolicies } from '../../../plan.ts'
import type { Field } from '../field.ts'

/** A part of `frontend` in the Config, with the results of its references. */
export type FrontendPart = {
  readonly policies: FrontendPolicies
  readonly resolved?: Partial<Pick<Field, 'backends' | 'mistakes' | 'unresolved'>> | undefined
  /** Path in the object of a path in the policy. */
  rename?(rest: Path): Path
}
