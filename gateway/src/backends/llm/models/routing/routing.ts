import { type CelProgram, evaluateBoolean } from '../../../../cel/cel.ts'
import { compileCheckedCel } from '../../../../cel/checked.ts'
import { CelEvaluationError } from '../../../../cel/failure.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import { chooseSticky, compileAffinity, digestOf } from '../../../../upstream/affinity/affinity.ts'
import { chooseWeighted } from '../../../../upstream/weighted-choice.ts'
import { routingRoots } from '../../config/model-settings.ts'
import type { RoutingConfig, WeightedConfig } from '../../config/virtual-models.ts'
import { type CatalogFacts, compileFailover } from './failover.ts'
import { compileRequiredLabels, noLabelledTarget } from './labels.ts'
import { type Lookup, noMatchingTarget, resolveOne, targetNotFound, type Virtual } from './resolution.ts'

const roots: ReadonlySet<string> = new Set(routingRoots)

export type RoutingContext = { context: CompileContext; lookup: Lookup; catalog: CatalogFacts }

/** Compiles the selection of targets of a virtual model. */
export function compileRouting(routing: RoutingConfig, parts: RoutingContext): Virtual {
  if (routing.weighted !== undefined) return compileWeighted(routing.weighted, parts)
  if (routing.failover !== undefined) return compileFailover(routing.failover, parts)
  return compileConditional(routing.conditional.targets, parts.lookup)
}

function compileWeighted(
  { targets, sessionAffinity, requiredLabels }: WeightedConfig,
  { lookup, context: { random } }: RoutingContext,
): Virtual {
  const weighted = targets.map(({ model, weight = 1 }) => ({ model, weight, health: undefined }))
  const digests = weighted.map(({ model }) => digestOf(model))
  const sessionOf = sessionAffinity && compileAffinity(sessionAffinity, roots)
  const requirement = requiredLabels && compileRequiredLabels(requiredLabels)

  function choose(all: typeof weighted, facts: Facts) {
    const session = sessionOf?.(facts)
    if (session === undefined) return chooseWeighted(all, random())
    return chooseSticky(all, all === weighted ? digests : all.map(({ model }) => digestOf(model)), session)
  }

  return (facts) => {
    if (requirement === undefined) {
      const chosen = choose(weighted, facts)
      return chosen ? resolveOne(chosen.model, lookup, facts) : targetNotFound
    }
    const fits = requirement(facts)
    const { headers } = facts.request
    const fitting = weighted.filter(({ model }) => fits?.(lookup(model, headers, 'virtual')?.labels) === true)
    const chosen = choose(fitting, facts)
    return chosen ? resolveOne(chosen.model, lookup, facts) : noLabelledTarget
  }
}

type Conditional = readonly { model: string; when?: string | undefined }[]

function compileConditional(targets: Conditional, lookup: Lookup): Virtual {
  const cases = targets.map(({ model, when }) => ({
    model,
    when: when === undefined ? undefined : compileCheckedCel(when, roots),
  }))
  return (facts) => {
    const chosen = cases.find(({ when }) => when === undefined || evaluateCondition(when, facts))
    return chosen ? resolveOne(chosen.model, lookup, facts) : noMatchingTarget
  }
}

/** Evaluates a condition; an evaluation error, for example a missing claim, counts as false. */
function evaluateCondition(when: CelProgram, facts: Facts): boolean {
  try {
    return evaluateBoolean(when, facts)
  } catch (error) {
    if (error instanceof CelEvaluationError) return false
    throw error
  }
}
