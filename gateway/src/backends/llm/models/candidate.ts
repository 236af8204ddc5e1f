import type { Facts } from '../../../pipeline/exchange.ts'
import type { Target } from './target.ts'

/** One option to serve a request: the target, and the model name to request. */
export type Candidate = {
  readonly target: Target
  readonly model: string
  /** In tokens; undefined if unknown, and without `contextFallback`. */
  readonly contextWindow?: number | undefined
}

/** Replaces aliases in the name of a model. */
export type Rename = (model: string) => string

/**
 * The candidate of a target with its computed fields. A computed model takes precedence over `overrides`, and
 * these over that of the target; and aliases apply to computed and to requested names.
 */
export function candidateOf(
  target: Target,
  requested: string,
  facts: Facts,
  rename: Rename = unchanged,
): Candidate {
  const { upstreamModel, transform } = target
  const model = configuredModelOf(target) ?? rename(requested)
  if (transform === undefined) return { target, model }
  const fields = transform(facts, upstreamModel ?? requested)
  const overrides = new Map([...target.overrides, ...fields.set])
  return {
    target: { ...target, overrides, removed: fields.removed },
    model: fields.model === undefined ? model : rename(fields.model),
  }
}

/** The model of all requests to a target; undefined for the requested one. */
export function configuredModelOf({
  overridingModel,
  upstreamModel,
}: Pick<Target, 'overridingModel' | 'upstreamModel'>): string | undefined {
  return overridingModel ?? upstreamModel
}

function unchanged(model: string): string {
  return model
}
