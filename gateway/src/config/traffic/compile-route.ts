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
import { compilePolicies, type Reach } from '../../policies/registry/registry.ts'
import { type PolicyScope, scopeNodes } from '../../policies/registry/scope.ts'
import { findBackend } from '../../upstream/config.ts'
import { compileNamedDestination } from '../../upstream/destination.ts'
import { compileNamedEndpoints } from '../../upstream/endpoints.ts'
import { chooseWeighted } from '../../upstream/weighted-choice.ts'
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
      const backend = () => httpBackend(route, node, surroundings)
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

function httpBackend(route: RouteConfig, node: JointNode, { sections, context }: RouteSurroundings): Backend {
  const { backends = [], policies = {} } = route
  const compile = () =>
    compileHttpBackend(backends, context, {
      named: sections.backends,
      policies,
      compileOther: () => {
        throw new Error('a route with an mcp or ai backend must have no other backend')
      },
    })
  return context.cached(node, 'http backend', compile)
}

/** Cache key of a route to HTTP servers. */
function httpNode(route: RouteConfig, { sections, context }: RouteSurroundings): JointNode {
  const { backends = [], policies = {} } = route
  const references = [
    ...backends.map(({ backend }) => backend),
    ...mirrorsOf(policies.requestMirror).map(({ backend }) => backend.backend),
  ]
  // A named backend may change without a change of the route.
  const dependencies = references.flatMap((reference) => dependencyOf(reference, sections.backends))
  return jointNode(route, dependencies, context)
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
  const { context, sections, maxBufferSize, jsonLimits, webhooks, prices, reach, maxPayloadSize } =
    surroundings
  const { entry, named } = onlyBackend(route, sections)
  const config = named?.ai ?? entry?.ai
  if (config === undefined) throw new Error(`route ${name} has no ai backend`)
  const { timeout, ai, backendTLS, backendAuth } = route.policies ?? {}
  const llm = compileLlmBackend(config, context, {
    place: `route ${name}`,
    maxBufferSize,
    jsonLimits,
    prices,
    policies: [entry?.policies?.ai, ai],
    backendPolicies: [entry?.policies, named?.policies, { backendTLS, backendAuth }],
    timeLimits: { firstByteTimeoutMs: milliseconds(timeout?.backendRequestTimeout) },
  })
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
    llmRequest: llm.llmRequest,
    guardrails,
    payloads: maxPayloadSize === undefined ? undefined : compilePayloads({ ...guards, maxPayloadSize }),
    reach: { ...reach, hostnames: route.hostnames },
  } as const
  return {
    behind: (scopes) => ({
      name,
      traffic: 'llm',
      policies: compilePolicies([...scopes, ...own], context, kind).policies,
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
  const { context, sections, maxBufferSize, jsonLimits, reach, mcp } = surroundings
  const { entry, named } = onlyBackend(route, sections)
  const config = named?.mcp ?? entry?.mcp
  if (config === undefined) throw new Error(`route ${name} has no mcp backend`)
  const compile = (rules: McpOptions['rules']) =>
    compileMcp(config, context, {
      ...mcp,
      maxBufferSize,
      jsonLimits,
      rules,
      scope: `route ${name}`,
      destination: (reference) => compileNamedDestination(reference, sections.backends, context),
      endpoints: (reference) => compileNamedEndpoints(reference, sections.backends, context),
    })
  return {
    behind(scopes) {
      const { policies, rules } = compilePolicies([...scopes, ...own], context, {
        kind: 'mcp',
        reach: { ...reach, hostnames: route.hostnames },
      })
      const { backend } = compile(rules)
      const inTime = limited(backend, route.policies?.timeout?.requestTimeout, context)
      const compiled = plainRoute(name, policies, withErrors(inTime, route, context), context)
      return { ...compiled, traffic: 'mcp' }
    },
    stop: () => compile(undefined).stop(),
  }
}

function onlyBackend({ backends = [] }: RouteConfig, { backends: named }: TrafficSections) {
  const entry: RouteBackendConfig | undefined = backends.find(({ error }) => error === undefined)
  return { entry, named: entry?.backend === undefined ? undefined : findBackend(entry.backend, named) }
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
