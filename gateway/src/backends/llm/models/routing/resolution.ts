import type { Headers } from '../../../../net/http/headers.ts'
import type { Refusal } from '../../../../pipeline/errors.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import { type Candidate, candidateOf } from '../candidate.ts'
import type { Target } from '../target.ts'

/** Failover beyond the order of candidates; undefined without any. */
export type FailoverRules = {
  /** A prompt that is too long for a target leads to the next one with a larger or unknown context window. */
  readonly contextFallback: boolean
  /** Time without content after which a streamed call is sent to a second target. */
  readonly hedgeDelayMs: number | undefined
}

/** The candidates of a request, best first, or a refusal. */
export type Resolution =
  | {
      readonly kind: 'candidates'
      readonly candidates: readonly Candidate[]
      readonly failover?: FailoverRules | undefined
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Selects the entry of `llm.models` for a name; internal entries are available to virtual models only. */
export type Lookup = (name: string, headers: Headers, origin: 'client' | 'virtual') => Target | undefined

/** Resolves the requests of a virtual model. */
export type Virtual = (facts: Facts) => Resolution

export const targetNotFound: Resolution = {
  kind: 'refused',
  refusal: {
    status: 404,
    code: 'virtual_model_target_not_found',
    message: 'No model serves the target of this virtual model for this request',
    param: 'model',
  },
}

export const noMatchingTarget: Resolution = noMatch(
  'No condition of this virtual model holds for this request',
)

/** The refusal of a request that no target may serve. */
export function noMatch(message: string): Resolution {
  const refusal = { status: 400, code: 'virtual_model_no_matching_target', message, param: 'model' }
  return { kind: 'refused', refusal }
}

/** Resolves to one target. */
export function resolveOne(model: string, lookup: Lookup, facts: Facts): Resolution {
  const target = lookup(model, facts.request.headers, 'virtual')
  return target ? { kind: 'candidates', candidates: [candidateOf(target, model, facts)] } : targetNotFound
}
