import { compilePrices, type Prices } from '../backends/llm/catalog/prices.ts'
import { compileLlmSection } from '../backends/llm/llm-section.ts'
import { mcpPaths } from '../backends/mcp/endpoint/paths.ts'
import { compileMcp, type McpOptions } from '../backends/mcp/mcp.ts'
import { ledgerSettingsOf } from '../ledger/config.ts'
import { type Cidr, compileCidrs, parseCidr } from '../lib/address/cidr.ts'
import { isLoopbackHost } from '../lib/address/host-port.ts'
import { defaultJsonLimits, type JsonLimits } from '../lib/json/limits.ts'
import { createYieldPoint, runYielding } from '../lib/scheduling/yielding.ts'
import { type ClientReader, createClientReader } from '../pipeline/client-address.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { MatchedRoute } from '../pipeline/exchange.ts'
import type { Backend } from '../pipeline/policy.ts'
import { compileListenerTable } from '../pipeline/routing/listener-table.ts'
import type { Address, HttpListener, Route, Snapshot } from '../pipeline/snapshot.ts'
import { compileModelAuthorization, type ModelRules } from '../policies/authorization.ts'
import { compileGuardrails, type ScopedGuards } from '../policies/guardrails/guardrails.ts'
import { type WebhookLimits, webhookLimits } from '../policies/guardrails/kinds/webhook/limits.ts'
import { compilePayloads } from '../policies/guardrails/payloads/payloads.ts'
import { compileNetworkAuthorization } from '../policies/network-authorization.ts'
import { deniedPage } from '../policies/oidc/denied-page.ts'
import { celVariablesOf } from '../policies/registry/cel-variables.ts'
import { compilePermits, type Permits } from '../policies/registry/permits.ts'
import { compilePolicies, type Reach } from '../policies/registry/registry.ts'
import type { PolicyScope } from '../policies/registry/scope.ts'
import type { Attribute } from '../telemetry/otlp/encode.ts'
import { compileNamedDestination, type UpstreamContext } from '../upstream/destination.ts'
import { compileNamedEndpoints } from '../upstream/endpoints.ts'
import { compileConnections } from './frontend/connections.ts'
import { compileCopies, targetPolicies, warnAboutPrograms, withEndpointPolicies } from './mcp/mcp.ts'
import { portsOf } from './ports.ts'
import { mcpLimitsOf } from './process-limits.ts'
import type { Config } from './schema.ts'
import { compileMetricExport } from './telemetry/metrics-config.ts'
import { compileTelemetry, identityOf } from './telemetry/telemetry.ts'
import { plainRoute, withOwnTls } from './traffic/compile-gateway.ts'
import type { TlsContext } from './traffic/compile-tls.ts'
import type { GatewayConfig } from './traffic/gateway-config.ts'
import { type TrafficSections, trafficSections } from './traffic/sections.ts'
import { compileTraffic, type Section } from './traffic/traffic.ts'
import { compileProxyProtocol, proxyProtocolOf } from './tunnels/tunnels.ts'
import { uiCall } from './ui-call.ts'
import { type UiConfig, uiPathsOf } from './ui-config.ts'

const defaultBindAddress = '::'
const defaultMaxBufferBytes = 32 * 1024 * 1024

/** Facts of the process for compilation, besides `CompileContext`. */
export type ProcessFacts = {
  version: string
  /** Attributes of the process in telemetry, from the environment. */
  resource?: readonly Attribute[] | undefined
  /** Labels of metrics, as CEL expressions. */
  labels?: Readonly<Record<string, string>> | undefined
  /** `SESSION_KEY` of the environment; `config.session.key` takes precedence. */
  sessionKey: string | undefined
  /** `OIDC_COOKIE_SECRET` of the environment. */
  loginSecrets?: string | undefined
  /** Limits of connections to guardrail webhooks, from the environment. */
  webhooks?: WebhookLimits | undefined
  /** Backend of `ui` on gateways. */
  ui: (permits: Permits) => Backend
}

/** Inputs that the parts of a configuration share. */
type Surroundings = {
  config: Config
  context: CompileContext
  sections: TrafficSections
  maxBufferSize: number
  jsonLimits: JsonLimits
  webhooks: WebhookLimits
  reach: Reach
  prices: Prices | undefined
  /** Bytes of prompts and responses in the ledger; undefined if it stores none. */
  maxPayloadSize: number | undefined
  /** Expressions of telemetry read texts of LLM calls. */
  retainsTexts: boolean
  mcp: Pick<
    McpOptions,
    'sessionKey' | 'sessionTtl' | 'limits' | 'version' | 'maxMessageSize' | 'maxPayloadSize'
  >
}

/** Compiles a validated configuration. Throws with the path of a file that cannot be read. */
export async function compileConfig(
  config: Config,
  given: CompileContext,
  facts: ProcessFacts,
): Promise<Snapshot> {
  const sections = trafficSections(config, given.cached)
  const sessionKey = config.config?.session?.key ?? facts.sessionKey
  const context: UpstreamContext & TlsContext = {
    ...given,
    backends: sections.backends,
    sessionKey,
    loginSecrets: facts.loginSecrets,
    frontendTls: config.frontendPolicies?.tls,
  }
  const ledger = ledgerSettingsOf(config.config ?? {})
  const maxPayloadSize = ledger?.payloads === true ? ledger.maxPayloadSize : undefined
  const identity = identityOf(config, context, facts)
  const telemetry = compileTelemetry(config, context, identity)
  const surroundings: Surroundings = {
    config,
    context,
    sections,
    maxBufferSize: config.frontendPolicies?.http?.maxBufferSize ?? defaultMaxBufferBytes,
    jsonLimits: jsonLimitsOf(config),
    webhooks: facts.webhooks ?? webhookLimits({}),
    reach: reachOf(config),
    prices: compilePrices(config.config?.modelCatalog, context),
    maxPayloadSize,
    retainsTexts: telemetry?.retains.sampled.llmTexts === true,
    mcp: {
      sessionKey,
      sessionTtl: config.config?.mcp?.sessionTtl,
      limits: mcpLimitsOf(config.config?.limits ?? {}),
      version: facts.version,
      maxMessageSize: config.frontendPolicies?.http?.maxMcpMessageSize,
      maxPayloadSize,
    },
  }
  const ports = portsOf({ ...config, gateways: surroundings.sections.gateways })
  const clients = clientReader(config)
  const address = (port: number, gateway?: GatewayConfig): Address => ({
    ...addressOf(config, { port, gateway }, context),
    telemetry,
  })
  const { llm, mcp } = await sectionsOf(surroundings)
  const { listeners, stops } = await compileTraffic({
    ...surroundings,
    attached: [
      ...(config.ui ? [uiSection(config.ui, facts.ui, surroundings)] : []),
      ...(mcp && ports.mcp === undefined ? [mcp] : []),
      ...(llm && ports.llm === undefined ? [llm] : []),
    ],
    address,
    clients,
  })
  if (llm && ports.llm !== undefined) {
    const plan = { hostname: undefined, path: ['llm'], tls: config.llm?.tls }
    const own = ownListener(llm, address(ports.llm), clients)
    listeners.push(withOwnTls(own, plan, context))
  }
  if (mcp && ports.mcp !== undefined) listeners.push(ownListener(mcp, address(ports.mcp), clients))
  if (mcp?.stop) stops.set('mcp', mcp.stop)
  return {
    listeners: new Map(listeners.map((listener) => [listener.key, listener])),
    stops,
    metricExport: compileMetricExport(config.config?.metrics, context, identity),
  }
}

async function sectionsOf(
  surroundings: Surroundings,
): Promise<{ llm: Section | undefined; mcp: Section | undefined }> {
  const { llm, mcp } = surroundings.config
  return { llm: llm && (await llmSection(llm, surroundings)), mcp: mcp && mcpSection(mcp, surroundings) }
}

async function llmSection(
  config: NonNullable<Config['llm']>,
  {
    context,
    sections,
    maxBufferSize,
    jsonLimits,
    webhooks,
    prices,
    reach,
    maxPayloadSize,
    retainsTexts,
    config: { config: settings },
  }: Surroundings,
): Promise<Section> {
  const limits = { maxBufferSize, jsonLimits, prices, modelCatalog: settings?.modelCatalog }
  const { llmRequest, backend, errorFormat } = await runYielding(
    compileLlmSection(config, context, limits),
    createYieldPoint(context.clock),
  )
  const own = scopeOf('llm', config.policies)
  const guards = {
    shared: [...guardsAt('llm', config.guardrails), ...guardsAt('llm.policies', config.policies?.guardrails)],
    ofModels: config.models.flatMap(({ name, guardrails }) => guardsAt(`model ${name}`, guardrails)),
  }
  const places = { backends: sections.backends, limits: webhooks, maxBufferedBytes: maxBufferSize }
  const steps = {
    kind: 'llm',
    maxBodyBytes: maxBufferSize,
    llmRequest,
    guardrails: compileGuardrails({ ...guards, ...places }, context),
    payloads:
      maxPayloadSize !== undefined || retainsTexts
        ? compilePayloads({ ...guards, maxPayloadSize })
        : undefined,
    modelAuthorization: compileModelAuthorization(rulesOfModels(config), context, celVariablesOf('llm')),
    reach,
  } as const
  return {
    references: config.gateways,
    // All requests of a gateway that match no route and no other section.
    paths: ['/'],
    routeBehind: (scopes) => ({
      name: 'llm',
      traffic: 'llm',
      policies: compilePolicies([...scopes, ...own], context, steps).policies,
      backend,
      meter: context.metrics.route('llm'),
      errorFormat,
    }),
    stop: undefined,
  }
}

function mcpSection(
  config: NonNullable<Config['mcp']>,
  { context, sections, maxBufferSize, jsonLimits, webhooks, reach, mcp }: Surroundings,
): Section {
  const own = scopeOf('mcp', config.policies)
  const places = { forwarding: config.policies, targets: config.targets }
  const named = sections.backends
  warnAboutPrograms('mcp', config, config.policies, context)
  const compile = (rules?: McpOptions['rules'], checks?: McpOptions['checks']) =>
    compileMcp(config, context, {
      ...mcp,
      maxBufferSize,
      jsonLimits,
      rules,
      checks,
      scope: 'mcp',
      policies: targetPolicies(places, context),
      destination: (reference, defaults) => compileNamedDestination(reference, named, context, defaults),
      endpoints: (reference, defaults) => compileNamedEndpoints(reference, named, context, defaults),
    })
  return {
    references: config.gateways,
    paths: mcpPaths,
    routeBehind(scopes) {
      const { policies, rules, checks } = compilePolicies([...scopes, ...own], context, {
        kind: 'mcp',
        maxBodyBytes: maxBufferSize,
        reach,
        webhooks,
      })
      const copies = compileCopies(places, named, context, checks)
      const { backend, pages } = compile(rules, copies.checks)
      return {
        name: 'mcp',
        traffic: 'mcp',
        policies: pages === undefined ? policies : [pages, ...policies],
        backend: withEndpointPolicies(backend, places, copies, context),
        meter: context.metrics.route('mcp'),
        errorFormat: () => 'text',
      }
    },
    stop: () => compile().stop(),
  }
}

function uiSection(
  config: UiConfig,
  backend: ProcessFacts['ui'],
  { context, maxBufferSize }: Surroundings,
): Section {
  const own = scopeOf('ui', config.policies)
  return {
    references: config.gateways,
    paths: uiPathsOf(config),
    routeBehind: (scopes) => {
      const all = [...scopes, ...own]
      const kind = { kind: 'ui', maxBodyBytes: maxBufferSize } as const
      const { policies } = compilePolicies(all, context, kind)
      const route = plainRoute(
        'ui',
        [uiCall, deniedPage, ...policies],
        backend(compilePermits(all, context)),
        context,
      )
      return { ...route, isConsole: true }
    },
  }
}

function guardsAt(place: string, config: ScopedGuards['config'] | undefined): ScopedGuards[] {
  return config === undefined ? [] : [{ scope: place, config }]
}

function scopeOf(place: string, policies: PolicyScope['policies'] | undefined): PolicyScope[] {
  return policies === undefined ? [] : [{ name: place, policies }]
}

/** A listener on the port of a section: its route matches every request. */
function ownListener(
  { routeBehind }: Section,
  address: Address,
  clients: ClientReader | undefined,
): HttpListener {
  const route = routeBehind([])
  const found: MatchedRoute<Route> = { target: { ...route, listener: route.name }, prefix: '/' }
  return { ...address, kind: 'http', tls: undefined, match: () => found, clients }
}

type Addressed = { port: number; gateway: GatewayConfig | undefined }

function addressOf(config: Config, { port, gateway }: Addressed, context: CompileContext): Address {
  const host = config.config?.bindAddress ?? defaultBindAddress
  const { networkAuthorization, http, ...frontend } = config.frontendPolicies ?? {}
  const trusted = trustedProxies(config)
  const isProxy = trusted.length === 0 ? undefined : compileCidrs(trusted)
  const isInternal = gateway?.mode === 'internal'
  const key = isInternal ? `internal:${port}` : `${host}:${port}`
  const rules = compileNetworkAuthorization(networkAuthorization, context, key)
  return {
    ...{ key, host, port, isProxy, rules, isInternal },
    settings: compileConnections({ ...frontend, http }),
    proxyProtocol: compileProxyProtocol(
      proxyProtocolOf(frontend),
      gateway?.tunnelProtocol,
      http?.trustedProxies,
    ),
  }
}

/** Undefined if no proxy is trusted: the peer of a connection is its client. */
function clientReader(config: Config): ClientReader | undefined {
  const trusted = trustedProxies(config)
  return trusted.length === 0 ? undefined : createClientReader({ trusted })
}

function trustedProxies({ frontendPolicies }: Config): Cidr[] {
  return (frontendPolicies?.http?.trustedProxies ?? []).flatMap((text) => parseCidr(text) ?? [])
}

function reachOf({ config, frontendPolicies }: Config): Reach {
  const allowed = (frontendPolicies?.http?.allowedHosts ?? []).map((hostname) => ({ hostname, target: true }))
  const find = compileListenerTable(allowed)
  return {
    isLoopback: isLoopbackHost(config?.bindAddress ?? defaultBindAddress),
    isAllowedHost: (host) => find(host) === true,
  }
}

function jsonLimitsOf({ frontendPolicies }: Config): JsonLimits {
  const { maxDepth, maxMembers, maxElements } = frontendPolicies?.http?.json ?? {}
  return {
    maxDepth: maxDepth ?? defaultJsonLimits.maxDepth,
    maxMembers: maxMembers ?? defaultJsonLimits.maxMembers,
    maxElements: maxElements ?? defaultJsonLimits.maxElements,
  }
}

function rulesOfModels({ models }: NonNullable<Config['llm']>): ModelRules[] {
  return models.flatMap(({ name, authorization }) =>
    authorization === undefined ? [] : [{ scope: `model ${name}`, config: authorization }],
  )
}
