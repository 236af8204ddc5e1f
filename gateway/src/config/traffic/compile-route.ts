import { mirrorsOf } from '../../backends/http/config.ts'
import { compileErrorBackend } from '../../backends/http/entries.ts'
import { compileHttpBackend } from '../../backends/http/http.ts'
import type { Prices } from '../../backends/llm/catalog/prices.ts'
import { compileLlmBackend } from '../../backends/llm/llm-backend.ts'
import { compileMcp, type McpOptions } from '../../backends/mcp/mcp.ts'
import { milliseconds } from '../../lib/duration.ts'
import type { JsonLimits } from '../../lib/json/limits.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Backend } from '../../pipeline/policy.ts'
import { withRequestTimeout } from '../../pipeline/request-timeout.ts'
import type { Route } from '../../pipeline/snapshot.ts'
import { compileGuardrails, type ScopedGuards } from '../../policies/guardrails/guardrails.ts'
import type { WebhookLimits } from '../../policies/guardrails/kinds/webhook/limits.ts'
import { compilePayloads } from '../../policies/guardrails/payloads/payloads.ts'
import { backendScope, compileBackendPolicies } from '../../policies/registry/backend-scope.ts'
import { compilePolicies, type Reach } from '../../policies/registry/registry.ts'
import { type PolicyScope, scopeNodes } from '../../policies/registry/scope.ts'
import { findBackend } from '../../upstream/config.ts'
import { compileNamedDestination } from '../../upstream/destination.ts'
import { compileNamedEndpoints } from '../../upstream/endpoints.ts'
import { chooseWeighted } from '../../upstream/weighted-choice.ts'
import { compileCopies, targetPolicies, warnAboutPrograms, withEndpointPolicies } from '../mcp/mcp.ts'
import { plainRoute } from './compile-gateway.ts'
import { type JointNode, jointNode } from './joint-node.ts'
import type { NamedBackendConfig, RouteBackendConfig, RouteConfig } from './route-config.ts'
import { kindOfRoute, nameOfRoute } from './route-kind.ts'
import type { TrafficSections } from './sections.ts'

/** Inputs that all routes share. */
export type RouteSurroundings = {
  sections: TrafficSections
  context: CompileContext
  maxBufferSize: number
  jsonLimits: JsonLimits
  webhooks: WebhookLimits
  /** Clients that can reach the gateway addresses. */
  reach: Reach
  prices?: Prices | undefined
  /** Bytes of prompts and responses in the ledger; undefined if it stores none. */
  maxPayloadSize: number | undefined
  /** Expressions of telemetry read texts of LLM calls. */
  retainsTexts: boolean
  mcp: Pick<McpOptions, 'sessionKey' | 'sessionTtl' | 'limits' | 'version' | 'maxPayloadSize'>
}

/** A route without the policies of its listeners. */
export type CompiledRoute = {
  behind(scopes: readonly PolicyScope[]): Route
  /** Closes resources that outlive requests. */
  stop: (() => Promise<void>) | undefined
}

/** Compiles a route once; all listeners share its backend. */
export function compileRoute(
  route: RouteConfig,
  index: number,
  surroundings: RouteSurroundings,
): CompiledRoute {
  const { behind, stop } = compileByKind(route, index, surroundings)
  const { allowAmbiguousPaths: allowsAmbiguousPaths, allowClientHeaders } = route
  if (allowsAmbiguousPaths !== true && allowClientHeaders === undefined) return { behind, stop }
  const allowedClientHeaders = allowClientHeaders?.map((name) => name.toLowerCase())
  return {
    behind: (scopes) => ({ ...behind(scopes), allowsAmbiguousPaths, allowedClientHeaders }),
    stop,
  }
}

function compileByKind(route: RouteConfig, index: number, surroundings: RouteSurroundings): CompiledRoute {
  const name = nameOfRoute(route, index)
  const own: PolicyScope[] =
    route.policies === undefined ? [] : [{ name: `route ${name}`, policies: route.policies }]
  switch (kindOfRoute(route, surroundings.sections.backends)) {
    case 'llm':
      return compileLlmRoute(route, { name, own }, surroundings)
    case 'mcp':
      return compileMcpRoute(route, { name, own }, surroundings)
    case 'http': {
      const { context, maxBufferSize } = surroundings
      const kind = { kind: 'http', maxBodyBytes: maxBufferSize } as const
      const node = httpNode(route, surroundings)
      const backend = () => httpBackend(route, { name, node }, surroundings)
      backend()
      const behind: CompiledRoute['behind'] = (scopes) => {
        const all = [...scopes, ...own]
        // Of 10,000 routes, a change compiles one. Files of policies and backend are files of the result.
        const joint = jointNode(node, scopeNodes(all, context), context)
        const purpose = `${name} behind ${scopes.map((scope) => scope.name).join()}, ${maxBufferSize}`
        return context.cached(joint, purpose, () =>
          plainRoute(name, compilePolicies(all, context, kind).policies, backend(), context),
        )
      }
      return { behind, stop: undefined }
    }
  }
}

type Own = { name: string; own: readonly PolicyScope[] }

function httpBackend(
  route: RouteConfig,
  { name, node }: { name: string; node: JointNode },
  { sections, context, maxBufferSize }: RouteSurroundings,
): Backend {
  const { backends = [], policies = {} } = route
  const compile = () =>
    compileHttpBackend(backends, context, {
      named: sections.backends,
      owner: route,
      policies,
      compileOther: () => {
        throw new Error('a route with an mcp or ai backend must have no other backend')
      },
      compilePolicies: (entry, named, index) =>
        compileBackendPolicies(backendScopes({ entry, named, index }, name, context), context, maxBufferSize),
    })
  return context.cached(node, `http backend, ${maxBufferSize}`, compile)
}

type BackendOfRoute = {
  readonly entry: RouteBackendConfig | undefined
  readonly named: NamedBackendConfig | undefined
  readonly index: number
}

/** The scopes of a backend of a route: the named backend, then the entry. */
function backendScopes(
  { entry, named, index }: BackendOfRoute,
  route: string,
  context: CompileContext,
): PolicyScope[] {
  return [
    ...backendScope(`backend ${named?.name}`, named?.policies, context),
    ...backendScope(`route ${route} backend ${index}`, entry?.policies, context),
  ]
}

/** Cache key of a route to HTTP servers. */
function httpNode(route: RouteConfig, { sections, context }: RouteSurroundings): JointNode {
  const { backends = [], policies = {} } = route
  const references = [
    ...backends.map(({ backend }) => backend),
    ...mirrorsOf(policies.requestMirror).map(({ backend }) => backend.backend),
  ]
  // A named backend may change without a change of the route.
  const dependencies = [
    ...references.flatMap((reference) => dependencyOf(reference, sections.backends)),
    ...scopeNodes(backends.flatMap(scopesOf), context),
  ]
  return jointNode(route, dependencies, context)

  function scopesOf(entry: RouteBackendConfig, index: number): PolicyScope[] {
    const named = entry.backend === undefined ? undefined : findBackend(entry.backend, sections.backends)
    return backendScopes({ entry, named, index }, '', context)
  }
}

/** The part of a named backend that its routes are compiled of: without its endpoints. */
function dependencyOf(reference: string | undefined, named: readonly NamedBackendConfig[]): object[] {
  const found = reference === undefined ? undefined : findBackend(reference, named)
  if (found === undefined) return []
  return [found.endpoints === undefined ? found : (found.policies ?? withoutPolicies)]
}

const withoutPolicies = {}

function compileLlmRoute(
  route: RouteConfig,
  { name, own }: Own,
  surroundings: RouteSurroundings,
): CompiledRoute {
  const { context, sections, maxBufferSize, jsonLimits, webhooks, prices, reach } = surroundings
  const { maxPayloadSize, retainsTexts } = surroundings
  const found = onlyBackend(route, sections)
  const { entry, named } = found
  const config = named?.ai ?? entry?.ai
  if (config === undefined) throw new Error(`route ${name} has no ai backend`)
  const { timeout, ai, backendTLS, backendAuth, backendTunnel } = route.policies ?? {}
  const llm = compileLlmBackend(config, context, {
    place: `route ${name}`,
    owner: named ?? route,
    maxBufferSize,
    jsonLimits,
    prices,
    policies: [entry?.policies?.ai, ai],
    backendPolicies: [entry?.policies, named?.policies, { backendTLS, backendAuth, backendTunnel }],
    timeLimits: { firstByteTimeoutMs: milliseconds(timeout?.backendRequestTimeout) },
  })
  const ofBackend = backendScopes(found, name, context)
  const backend = withErrors(limited(llm.backend, timeout?.requestTimeout, context), route, context)
  const guards = {
    shared: [...guardsAt(`route ${name}`, ai), ...guardsAt(`route ${name} backend`, entry?.policies?.ai)],
    ofModels: [],
  }
  const guardrails = compileGuardrails(
    {
      ...guards,
      backends: sections.backends,
      limits: webhooks,
      maxBufferedBytes: maxBufferSize,
    },
    context,
  )
  const kind = {
    kind: 'llm',
    maxBodyBytes: maxBufferSize,
    llmRequest: llm.llmRequest,
    guardrails,
    payloads:
      maxPayloadSize !== undefined || retainsTexts
        ? compilePayloads({ ...guards, maxPayloadSize })
        : undefined,
    reach: { ...reach, hostnames: route.hostnames },
  } as const
  return {
    behind: (scopes) => ({
      name,
      traffic: 'llm',
      policies: compilePolicies([...scopes, ...own, ...ofBackend], context, kind).policies,
      backend,
      meter: context.metrics.route(name),
      errorFormat: llm.errorFormat,
    }),
    stop: undefined,
  }
}

function guardsAt(
  place: string,
  ai: { promptGuard?: ScopedGuards['config'] | undefined } | undefined,
): ScopedGuards[] {
  return ai?.promptGuard === undefined ? [] : [{ scope: place, config: ai.promptGuard }]
}

function compileMcpRoute(
  route: RouteConfig,
  { name, own }: Own,
  surroundings: RouteSurroundings,
): CompiledRoute {
  const { context, sections, maxBufferSize, jsonLimits, webhooks, reach, mcp } = surroundings
  const found = onlyBackend(route, sections)
  const { entry, named } = found
  const config = named?.mcp ?? entry?.mcp
  if (config === undefined) throw new Error(`route ${name} has no mcp backend`)
  const levels = [entry?.policies, named?.policies]
  const places = { forwarding: route.policies, backend: levels, targets: config.targets }
  const { backends } = sections
  warnAboutPrograms(`route ${name}`, config, route.policies, context)
  const compile = (rules?: McpOptions['rules'], checks?: McpOptions['checks']) =>
    compileMcp(config, context, {
      ...mcp,
      maxBufferSize,
      jsonLimits,
      rules,
      checks,
      scope: `route ${name}`,
      policies: targetPolicies(places, context),
      destination: (reference, defaults) => compileNamedDestination(reference, backends, context, defaults),
      endpoints: (reference, defaults) => compileNamedEndpoints(reference, backends, context, defaults),
    })
  return {
    behind(scopes) {
      const all = [...scopes, ...own, ...backendScopes(found, name, context)]
      const { policies, rules, checks } = compilePolicies(all, context, {
        kind: 'mcp',
        maxBodyBytes: maxBufferSize,
        reach: { ...reach, hostnames: route.hostnames },
        webhooks,
      })
      const copies = compileCopies(places, backends, context, checks)
      const { backend, pages } = compile(rules, copies.checks)
      const limited = withEndpointPolicies(backend, places, copies, context)
      const entered = pages === undefined ? policies : [pages, ...policies]
      const compiled = plainRoute(name, entered, withErrors(limited, route, context), context)
      return { ...compiled, traffic: 'mcp' }
    },
    stop: () => compile().stop(),
  }
}

function onlyBackend({ backends = [] }: RouteConfig, { backends: named }: TrafficSections) {
  const index = backends.findIndex(({ error }) => error === undefined)
  const entry: RouteBackendConfig | undefined = backends[index]
  return { index, entry, named: entry?.backend === undefined ? undefined : findBackend(entry.backend, named) }
}

/** Gives the `error` entries of a route their share of the requests. */
function withErrors(backend: Backend, { backends = [] }: RouteConfig, { random }: CompileContext): Backend {
  const choices = backends.map(({ error, weight = 1 }) => ({
    weight,
    backend: error === undefined ? backend : compileErrorBackend(error),
  }))
  if (choices.length < 2) return backend
  return (exchange) => (chooseWeighted(choices, random())?.backend ?? backend)(exchange)
}

function limited(backend: Backend, limit: string | undefined, { clock }: CompileContext): Backend {
  const limitMs = milliseconds(limit) ?? 0
  return limitMs === 0 ? backend : withRequestTimeout(backend, limitMs, clock)
}
