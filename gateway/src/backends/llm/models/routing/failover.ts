import { milliseconds } from '../../../../lib/duration.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import { compileAffinity, digestOf } from '../../../../upstream/affinity/affinity.ts'
import type { ContextWindows } from '../../catalog/context-windows.ts'
import type { Prices } from '../../catalog/prices.ts'
import { routingRoots } from '../../config/model-settings.ts'
import type { FailoverConfig } from '../../config/virtual-models.ts'
import { estimateTokens } from '../../reply/usage.ts'
import { type Candidate, candidateOf } from '../candidate.ts'
import { fittingFirst } from './context-window.ts'
import {
  compileCostOrder,
  compileLatencyOrder,
  compileStickyOrder,
  type Equal,
  type OrderEquals,
  shuffle,
} from './equals.ts'
import { compileRequiredLabels, noLabelledTarget } from './labels.ts'
import { type FailoverRules, type Lookup, targetNotFound, type Virtual } from './resolution.ts'

const roots: ReadonlySet<string> = new Set(routingRoots)

/** Facts of the model catalog; undefined without one. */
export type CatalogFacts = { prices: Prices | undefined; contextWindows: ContextWindows | undefined }

type FailoverContext = { context: CompileContext; lookup: Lookup; catalog: CatalogFacts }

type TargetOfPriority = { readonly model: string; readonly digest: number }

/** Compiles failover: candidates by priority, ordered within each. */
export function compileFailover(
  config: FailoverConfig,
  { context, lookup, catalog }: FailoverContext,
): Virtual {
  const priorities = byPriority(config.targets)
  const order = compileOrder(config, catalog.prices, context)
  const requirement = config.requiredLabels && compileRequiredLabels(config.requiredLabels)
  const isContextAware = config.contextFallback === true
  const hedgeDelayMs = milliseconds(config.hedge?.delay)
  const rules: FailoverRules | undefined =
    isContextAware || hedgeDelayMs !== undefined
      ? { contextFallback: isContextAware, hedgeDelayMs }
      : undefined

  function candidateFor({ model, digest }: TargetOfPriority, facts: Facts): Equal | undefined {
    const target = lookup(model, facts.request.headers, 'virtual')
    if (target === undefined) return undefined
    const candidate = candidateOf(target, model, facts)
    if (catalog.contextWindows === undefined || !isContextAware) return { candidate, digest }
    const { provider, configuredModel } = target
    const contextWindow = catalog.contextWindows(provider.name, [candidate.model, configuredModel])
    return { candidate: { ...candidate, contextWindow }, digest }
  }

  return (facts) => {
    const fits = requirement ? (requirement(facts) ?? noLabels) : undefined
    const candidates: Candidate[] = []
    let isKnown = false
    for (const targets of priorities) {
      const equals = targets.flatMap((target) => candidateFor(target, facts) ?? [])
      isKnown ||= equals.length > 0
      const fitting = fits ? equals.filter(({ candidate }) => fits(candidate.target.labels)) : equals
      for (const { candidate } of order(fitting, facts)) candidates.push(candidate)
    }
    if (candidates.length === 0) return isKnown ? noLabelledTarget : targetNotFound
    const ordered = isContextAware ? fittingFirst(candidates, promptTokens(facts)) : candidates
    return { kind: 'candidates', candidates: ordered, failover: rules }
  }
}

function noLabels(): boolean {
  return false
}

function promptTokens({ llmRequest }: Facts): number {
  return llmRequest === undefined ? 0 : estimateTokens(llmRequest)
}

/** Targets of equal priority, lowest number first. */
function byPriority(targets: FailoverConfig['targets']): readonly (readonly TargetOfPriority[])[] {
  const groups = new Map<number, TargetOfPriority[]>()
  for (const { model, priority } of targets.toSorted((one, other) => one.priority - other.priority)) {
    const group = groups.get(priority) ?? []
    groups.set(priority, group)
    group.push({ model, digest: digestOf(model) })
  }
  return [...groups.values()]
}

function compileOrder(
  { sessionAffinity, prefer }: FailoverConfig,
  prices: Prices | undefined,
  { random }: CompileContext,
): OrderEquals {
  if (sessionAffinity !== undefined)
    return compileStickyOrder(compileAffinity(sessionAffinity, roots), random)
  if (prefer === 'latency') return compileLatencyOrder(random)
  if (prefer === 'cost' && prices !== undefined) return compileCostOrder(priceBy(prices), random)
  return (equals) => shuffle(equals, random)
}

/** Tokens of output in the comparison of prices. */
const comparedOutputTokens = 1_000

/** The price of the prompt and an output of 1,000 tokens, in picodollars. */
function priceBy(prices: Prices) {
  return ({ target, model }: Candidate, facts: Facts): number | undefined => {
    const inputTokens = promptTokens(facts)
    const cost = prices(target.provider.name, [model, target.configuredModel], {
      inputTokens,
      outputTokens: comparedOutputTokens,
      totalTokens: inputTokens + comparedOutputTokens,
      cachedInputTokens: 0,
      cacheCreationInputTokens: 0,
      reasoningTokens: 0,
      estimated: true,
    })
    return cost.kind === 'cost' ? Number(cost.amount) : undefined
  }
}
