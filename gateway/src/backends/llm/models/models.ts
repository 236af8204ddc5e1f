import type { CelProgram } from '../../../cel/cel.ts'
import { compileCel, evaluateBoolean } from '../../../cel/cel.ts'
import { CelEvaluationError } from '../../../cel/failure.ts'
import { compilePattern } from '../../../lib/pattern.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import { chooseWeighted } from '../../../upstream/weighted-choice.ts'
import type { LlmConfig, ModelConfig, RoutingConfig } from '../config/config.ts'
import { routingRoots } from '../config/model-settings.ts'
import { type Candidate, candidateOf } from './candidate.ts'
import { compileNamePattern, type NamePattern } from './name-pattern.ts'
import { shuffleWithinPriority } from './routing/priority-order.ts'
import { compileTarget, type Target } from './target.ts'

/** The candidates of a request, best first, or a refusal. */
export type Resolution =
  | { readonly kind: 'candidates'; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export type Models = {
  resolve(requested: string, facts: Facts): Resolution
  /** Public model names, virtual ones first; patterns are listed as written. */
  readonly publicNames: readonly string[]
  /** A request with this model name can be served. */
  isPublic(name: string): boolean
  /** Requests must contain a model name. */
  readonly needsName: boolean
}

const notFound: Resolution = {
  kind: 'refused',
  refusal: { status: 404, code: 'model_not_found', message: 'Model not found', param: 'model' },
}

type Entry = {
  readonly pattern: NamePattern
  readonly name: string
  readonly internal: boolean
  readonly target: Target
  accepts(headers: Headers): boolean
}

/** Selects the entry of `llm.models` for a name; internal entries are available to virtual models only. */
type Lookup = (name: string, headers: Headers, origin: 'client' | 'virtual') => Target | undefined

type Virtual = (facts: Facts) => Resolution

/**
 * Compiles the resolution of model names: virtual models by exact name, then `llm.models` by number of
 * literal characters, then by order. Entries with failed header matches are skipped. Yields once per model.
 */
export function* compileModels(config: LlmConfig, context: CompileContext): Generator<void, Models> {
  const entries: Entry[] = []
  for (const model of config.models) {
    yield
    entries.push(compileEntry(model, config, context))
  }
  yield
  const lookup = compileLookup(entries)
  const virtuals = new Map(
    (config.virtualModels ?? []).map(({ name, routing }) => [name, compileRouting(routing, lookup, context)]),
  )
  const listed = entries.filter((entry) => !entry.internal)
  return {
    publicNames: [...new Set([...virtuals.keys(), ...listed.map((entry) => entry.name)])],
    isPublic: (name) => virtuals.has(name) || listed.some((entry) => entry.pattern.matches(name)),
    needsName: true,
    resolve(requested, facts) {
      const virtual = virtuals.get(requested)
      if (virtual) return virtual(facts)
      const target = lookup(requested, facts.request.headers, 'client')
      return target ? { kind: 'candidates', candidates: [candidateOf(target, requested, facts)] } : notFound
    },
  }
}

function compileEntry(model: ModelConfig, config: LlmConfig, context: CompileContext): Entry {
  return {
    pattern: compileNamePattern(model.name),
    name: model.name,
    internal: model.visibility === 'internal',
    target: compileTarget(model, config, context),
    accepts: compileMatches(model.matches),
  }
}

function compileLookup(entries: readonly Entry[]): Lookup {
  const exact = new Map<string, Entry[]>()
  const patterns: Entry[] = []
  for (const entry of entries) {
    if (!entry.pattern.exact) patterns.push(entry)
    else exact.set(entry.name, [...(exact.get(entry.name) ?? []), entry])
  }
  // A stable sort preserves the order of the configuration among equal patterns.
  patterns.sort((one, other) => other.pattern.literals - one.pattern.literals)
  return (name, headers, origin) => {
    const isEligible = (entry: Entry) => (origin === 'virtual' || !entry.internal) && entry.accepts(headers)
    for (const entry of exact.get(name) ?? []) if (isEligible(entry)) return entry.target
    for (const entry of patterns) if (entry.pattern.matches(name) && isEligible(entry)) return entry.target
    return undefined
  }
}

function compileMatches(matches: ModelConfig['matches']): (headers: Headers) => boolean {
  if (matches === undefined || matches.length === 0) return () => true
  const alternatives = matches.map((match) => match.headers.map(compileHeaderMatch))
  return (headers) => alternatives.some((all) => all.every((isMatch) => isMatch(headers)))
}

type HeaderMatch = NonNullable<ModelConfig['matches']>[number]['headers'][number]

function compileHeaderMatch({ name, value }: HeaderMatch): (headers: Headers) => boolean {
  const header = name.toLowerCase()
  if (value.regex === undefined) {
    const expected = value.exact
    return (headers) => firstHeader(headers, header) === expected
  }
  const pattern = compilePattern(value.regex)
  if (!pattern.ok) throw new Error(pattern.message)
  return (headers) => {
    const sent = firstHeader(headers, header)
    return sent !== undefined && pattern.test(sent)
  }
}

function compileRouting(routing: RoutingConfig, lookup: Lookup, context: CompileContext): Virtual {
  if (routing.weighted !== undefined) return compileWeighted(routing.weighted.targets, lookup, context)
  if (routing.failover !== undefined) return compileFailover(routing.failover.targets, lookup, context)
  return compileConditional(routing.conditional.targets, lookup)
}

const targetNotFound: Resolution = {
  kind: 'refused',
  refusal: {
    status: 404,
    code: 'virtual_model_target_not_found',
    message: 'No model serves the target of this virtual model for this request',
    param: 'model',
  },
}

function resolveOne(model: string, lookup: Lookup, facts: Facts): Resolution {
  const target = lookup(model, facts.request.headers, 'virtual')
  return target ? { kind: 'candidates', candidates: [candidateOf(target, model, facts)] } : targetNotFound
}

type WeightedTargets = readonly { model: string; weight?: number | undefined }[]

function compileWeighted(targets: WeightedTargets, lookup: Lookup, { random }: CompileContext): Virtual {
  const weighted = targets.map(({ model, weight = 1 }) => ({ model, weight }))
  return (facts) => {
    const chosen = chooseWeighted(weighted, random())
    return chosen ? resolveOne(chosen.model, lookup, facts) : targetNotFound
  }
}

type Prioritised = readonly { model: string; priority: number }[]

function compileFailover(targets: Prioritised, lookup: Lookup, { random }: CompileContext): Virtual {
  const ordered = [...targets].sort((one, other) => one.priority - other.priority)
  return (facts) => {
    const candidates: Candidate[] = []
    for (const { model } of shuffleWithinPriority(ordered, random)) {
      const target = lookup(model, facts.request.headers, 'virtual')
      if (target) candidates.push(candidateOf(target, model, facts))
    }
    return candidates.length > 0 ? { kind: 'candidates', candidates } : targetNotFound
  }
}

type Conditional = readonly { model: string; when?: string | undefined }[]

function compileConditional(targets: Conditional, lookup: Lookup): Virtual {
  const cases = targets.map(({ model, when }) => ({
    model,
    when: when === undefined ? undefined : compileWhen(when),
  }))
  return (facts) => {
    const chosen = cases.find(({ when }) => when === undefined || evaluateCondition(when, facts))
    return chosen ? resolveOne(chosen.model, lookup, facts) : noMatchingTarget
  }
}

const noMatchingTarget: Resolution = {
  kind: 'refused',
  refusal: {
    status: 400,
    code: 'virtual_model_no_matching_target',
    message: 'No condition of this virtual model holds for this request',
    param: 'model',
  },
}

function compileWhen(when: string): CelProgram {
  const compiled = compileCel(when, new Set(routingRoots))
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  return compiled.program
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
