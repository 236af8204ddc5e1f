import { milliseconds } from '../../lib/duration.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { BackendPolicies } from '../../upstream/config.ts'
import { compileConnection } from '../../upstream/connection.ts'
import { mergePolicies } from '../../upstream/destination.ts'
import { compileHeaderModifier } from '../../upstream/header-modifier.ts'
import { compileHealth } from '../../upstream/health.ts'
import type { TimeLimits } from './attempt/provider-request.ts'
import { type CacheOptions, compileResponseCache, type ResponseCache } from './cache/cache.ts'
import type { LlmBackendConfig, LlmPolicyConfig, LlmProviderEntry } from './config/backend-config.ts'
import { createLlm, type Llm, type LlmLimits } from './llm.ts'
import { baseUrlOf } from './models/base-url.ts'
import { candidateOf, type Rename } from './models/candidate.ts'
import { compileEviction } from './models/eviction/eviction.ts'
import type { Models } from './models/models.ts'
import { compileNamePattern } from './models/name-pattern.ts'
import { compileProviderAuth } from './models/provider-auth.ts'
import { shuffleWithinPriority } from './models/routing/priority-order.ts'
import { addressOf, compileBody, type Target } from './models/target.ts'
import type { ProviderKind, ProviderSettings } from './providers/provider.ts'
import { findProviderKind } from './providers/providers.ts'
import { endpointsBySuffix } from './request/endpoints.ts'

/** Settings of an `ai` backend from its place of use. */
export type LlmBackendOptions = LlmLimits & {
  /** Identifies the place of configuration; evictions of providers are retained under it. */
  place: string
  /** The named backend or the route that contains the providers. */
  owner?: object | undefined
  /** `policies.ai` of the backend and the route, most specific first. */
  policies?: readonly (LlmPolicyConfig | undefined)[]
  /** Other backend policies of the backend and the route, most specific first. */
  backendPolicies?: readonly (BackendPolicies | undefined)[]
  timeLimits?: Partial<TimeLimits> | undefined
}

/** A provider of the backend; lower priorities come first. */
type RankedTarget = { readonly priority: number; readonly target: Target; readonly rename: Rename }

/**
 * Compiles an `ai` backend, which serves all requested models. Throws for issues of `checkLlmBackend` and
 * unreadable credential files.
 */
export function compileLlmBackend(
  config: LlmBackendConfig,
  context: CompileContext,
  options: LlmBackendOptions,
): Llm {
  const { http, responseHeaderModifier } = mergePolicies(options.backendPolicies ?? [])
  const ranked = entriesOf(config).map(({ entry, priority }): RankedTarget => {
    const policies = definedPolicies([entry.policies?.ai, ...(options.policies ?? [])])
    return {
      priority,
      target: compileEntry(entry, policies, context, options),
      rename: compileAliases(mergeFields(policies, ({ modelAliases }) => modelAliases)),
    }
  })
  const timeout = milliseconds(http?.requestTimeout)
  const { firstByteTimeoutMs = timeout, idleTimeoutMs } = options.timeLimits ?? {}
  const llm = createLlm(
    {
      models: compileRankedModels(ranked, aliasNames(config, options), context),
      endpoints: endpointsBySuffix(routesOf(config, options) ?? {}),
      timeLimits: { firstByteTimeoutMs, idleTimeoutMs },
    },
    context,
    options,
  )
  return responseHeaderModifier ? withReplyHeaders(llm, compileHeaderModifier(responseHeaderModifier)) : llm
}

function withReplyHeaders(llm: Llm, edit: (headers: Headers) => void): Llm {
  return {
    ...llm,
    async backend(exchange) {
      const reply = await llm.backend(exchange)
      edit(reply.headers)
      return reply
    },
  }
}

function definedPolicies(policies: readonly (LlmPolicyConfig | undefined)[]): readonly LlmPolicyConfig[] {
  return policies.filter((policy) => policy !== undefined)
}

/** All providers with the priority of their group, best first. */
export function entriesOf(
  config: LlmBackendConfig,
): { entry: LlmProviderEntry; priority: number; path: (string | number)[] }[] {
  if (config.groups === undefined) return [{ entry: config, priority: 0, path: [] }]
  return config.groups.flatMap(({ providers }, priority) =>
    providers.map((entry, index) => ({ entry, priority, path: ['groups', priority, 'providers', index] })),
  )
}

/** The provider of an entry as configured. */
export type ChosenProvider = {
  name: string
  kind: ProviderKind | undefined
  settings: ProviderSettings
  model: string | undefined
}

/** Provider kind, settings and model of an entry. */
export function providerOf({ provider }: Pick<LlmProviderEntry, 'provider'>): ChosenProvider {
  const [chosen] = Object.entries(provider).filter(([, settings]) => settings !== undefined)
  const [name, given] = chosen ?? ['', undefined]
  const { model, ...settings } = given ?? {}
  return { name, kind: findProviderKind(name), settings, model }
}

/** Paths are matched before a provider is selected, so providers in groups cannot have `routes`. */
function routesOf(
  config: LlmBackendConfig,
  { policies: ai = [] }: LlmBackendOptions,
): LlmPolicyConfig['routes'] {
  const own = config.groups === undefined ? config.policies?.ai : undefined
  return definedPolicies([own, ...ai]).find(({ routes }) => routes !== undefined)?.routes
}

function aliasNames(config: LlmBackendConfig, { policies: ai = [] }: LlmBackendOptions): string[] {
  const own = entriesOf(config).map(({ entry }) => entry.policies?.ai)
  return definedPolicies([...own, ...ai]).flatMap(({ modelAliases = {} }) => Object.keys(modelAliases))
}

/** Merges a field of several policies; the most specific policy takes precedence. */
function mergeFields<T>(
  policies: readonly LlmPolicyConfig[],
  read: (policy: LlmPolicyConfig) => Readonly<Record<string, T>> | undefined,
): Record<string, T> {
  return Object.fromEntries(policies.toReversed().flatMap((policy) => Object.entries(read(policy) ?? {})))
}

function bodySettings(policies: readonly LlmPolicyConfig[]): Parameters<typeof compileBody>[0] {
  const expressions = (key: 'transformations' | 'finalTransformations') =>
    policies.some((policy) => policy[key] !== undefined)
      ? mergeFields(policies, (policy) => policy[key])
      : undefined
  return {
    overrides: mergeFields(policies, ({ overrides }) => overrides),
    defaults: mergeFields(policies, ({ defaults }) => defaults),
    transformation: expressions('transformations'),
    finalTransformation: expressions('finalTransformations'),
    prompts: policies.find(({ prompts }) => prompts !== undefined)?.prompts,
    promptCaching: policies.find(({ promptCaching }) => promptCaching !== undefined)?.promptCaching,
  }
}

function compileEntry(
  entry: LlmProviderEntry,
  policies: readonly LlmPolicyConfig[],
  context: CompileContext,
  { place, owner, backendPolicies: backend = [] }: LlmBackendOptions,
): Target {
  const { name, kind, settings, model } = providerOf(entry)
  if (!kind) throw new Error(`${place}: ai: unknown provider "${name}"`)
  const provider = kind.configure(settings)
  const configuredModel = entry.name ?? model ?? provider.name
  const merged = mergePolicies([entry.policies, ...backend])
  const { backendAuth: auth = kind.ambientAuth, backendTLS, requestHeaderModifier } = merged
  const { origin, basePath } = addressOf(provider, baseUrlOf(entry, provider, backendTLS !== undefined))
  // Names of providers may repeat.
  const label = `${place}/${configuredModel} ${origin}${basePath}`
  return {
    configuredModel,
    provider,
    upstreamModel: model,
    origin,
    basePath,
    fixedPath: entry.pathOverride,
    preservesPath: true,
    connection: compileConnection(merged, context.egress.of(entry), context),
    ...compileProviderAuth(
      auth,
      {
        at: `${place}: backendAuth.key`,
        use: { source: merged.backendAuth ?? entry, destination: entry, owner, connection: merged },
        region: provider.signingRegion,
      },
      context,
    ),
    editHeaders: requestHeaderModifier && compileHeaderModifier(requestHeaderModifier),
    editReplyHeaders: undefined,
    ...compileBody(bodySettings(policies)),
    cache: compileCache(
      policies,
      {
        place: `${place}/${configuredModel}/${origin}${basePath}/${model ?? ''}`,
        model: configuredModel,
        settings: [entry, policies, backend],
      },
      context,
    ),
    sharedObjects: new Set(policies.find(({ sharedObjects }) => sharedObjects !== undefined)?.sharedObjects),
    guardrails: undefined,
    authorization: undefined,
    send: provider.local ?? context.send,
    meter: context.metrics.llm(configuredModel, provider.name),
    eviction: compileEviction(
      {
        name: `${place}/llm/eviction/${configuredModel}/${origin}${basePath}/${model ?? ''}`,
        place: label,
        health: merged.health && compileHealth(merged.health, label, context),
      },
      context,
    ),
  }
}

/** A final transformation may have different values for equal requests, so that no response is stored. */
function compileCache(
  policies: readonly LlmPolicyConfig[],
  options: CacheOptions,
  context: CompileContext,
): ResponseCache | undefined {
  const config = policies.find(({ cache }) => cache !== undefined)?.cache
  const isStable = policies.every(({ finalTransformations }) => finalTransformations === undefined)
  return config && isStable ? compileResponseCache(config, options, context) : undefined
}

function compileAliases(aliases: Readonly<Record<string, string>>): Rename {
  const exact = new Map(Object.entries(aliases).filter(([alias]) => !alias.includes('*')))
  const patterns = Object.entries(aliases)
    .filter(([alias]) => alias.includes('*'))
    .map(([alias, model]) => ({ pattern: compileNamePattern(alias), model }))
    .sort((one, other) => other.pattern.literals - one.pattern.literals)
  return (model) => exact.get(model) ?? patterns.find(({ pattern }) => pattern.matches(model))?.model ?? model
}

/** Orders providers by priority, at random within one priority. */
function compileRankedModels(
  ranked: readonly RankedTarget[],
  aliases: readonly string[],
  { random }: CompileContext,
): Models {
  const models = ranked.map(({ target }) => target.upstreamModel)
  const acceptsAny = models.includes(undefined)
  const names = new Set([...aliases, ...models.filter((model) => model !== undefined)])
  return {
    publicNames: acceptsAny ? [...names, '*'] : [...names],
    isPublic: (name) => acceptsAny || names.has(name),
    needsName: acceptsAny,
    resolve(requested, facts) {
      const candidates = shuffleWithinPriority(ranked, random).map(({ target, rename }) =>
        candidateOf(target, requested, facts, rename),
      )
      return { kind: 'candidates', candidates }
    },
  }
}
