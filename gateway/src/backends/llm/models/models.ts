import { compilePattern } from '../../../lib/pattern.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'
import { candidateOf } from './candidate.ts'
import { compileNamePattern, type NamePattern } from './name-pattern.ts'
import type { CatalogFacts } from './routing/failover.ts'
import type { Lookup, Resolution } from './routing/resolution.ts'
import { compileRouting } from './routing/routing.ts'
import { compileTarget, type Target } from './target.ts'

export type Models = {
  resolve(requested: string, facts: Facts): Resolution
  /** Public model names, virtual ones first; patterns are listed as written. */
  readonly publicNames: readonly string[]
  /** A request with this model name can be served. */
  isPublic(name: string): boolean
  /** The target of an entry of `llm.models` by its name, also behind virtual models. */
  targetNamed?(name: string): Target | undefined
  /** The targets of public entries, in order, for requests without a model. */
  listed?(facts: Facts): readonly Target[]
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

/**
 * Compiles the resolution of model names: virtual models by exact name, then `llm.models` by number of
 * literal characters, then by order. Entries with failed header matches are skipped. Yields once per model.
 */
export function* compileModels(
  config: LlmConfig,
  context: CompileContext,
  catalog: CatalogFacts,
): Generator<void, Models> {
  const entries: Entry[] = []
  for (const model of config.models) {
    yield
    entries.push(compileEntry(model, config, context))
  }
  yield
  const lookup = compileLookup(entries)
  const virtuals = new Map(
    (config.virtualModels ?? []).map(({ name, routing }) => [
      name,
      compileRouting(routing, { context, lookup, catalog }),
    ]),
  )
  const listed = entries.filter((entry) => !entry.internal)
  return {
    publicNames: [...new Set([...virtuals.keys(), ...listed.map((entry) => entry.name)])],
    isPublic: (name) => virtuals.has(name) || listed.some((entry) => entry.pattern.matches(name)),
    listed: ({ request }) =>
      listed.filter((entry) => entry.accepts(request.headers)).map((entry) => entry.target),
    needsName: true,
    targetNamed: (name) => entries.find((entry) => entry.name === name)?.target,
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
