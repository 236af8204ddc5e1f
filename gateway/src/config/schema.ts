import {
  cacheDatabaseOf,
  cacheDatabaseSchema,
  checkCacheDatabase,
} from '../backends/llm/cache/database/settings.ts'
import { checkModelCatalog, modelCatalogSchema } from '../backends/llm/catalog/config.ts'
import { checkLlm } from '../backends/llm/config/check.ts'
import { checkCacheStores } from '../backends/llm/config/check-cache-stores.ts'
import { checkPreferredCosts } from '../backends/llm/config/check-virtual-models.ts'
import { guardedLlmFields } from '../backends/llm/config/config.ts'
import {
  backendReferences,
  checkMcp,
  checkSessionKey,
  checkSessionTtl,
} from '../backends/mcp/check-config.ts'
import { mcpFields, mcpSettingsSchema, sessionSettingsSchema } from '../backends/mcp/config.ts'
import { defaultMaxMessageBytes } from '../backends/mcp/mcp.ts'
import { tcpRouteSchema } from '../backends/tcp/config.ts'
import { checkCustomFunctions } from '../cel/check-custom-functions.ts'
import { checkLedger, explainSchema, ledgerSchema, standardAttributesSchema } from '../ledger/config.ts'
import { parseCidr } from '../lib/address/cidr.ts'
import { isLoopbackHost, parseHostPort } from '../lib/address/host-port.ts'
import { runToCompletion } from '../lib/scheduling/yielding.ts'
import { hostnameMistake } from '../pipeline/routing/hostnames.ts'
import { authorizationSchema, checkAuthorization } from '../policies/authorization.ts'
import { checkGuardrails, type GuardrailsConfig, guardrailsSchema } from '../policies/guardrails/config.ts'
import { checkNetworkAuthorization, networkAuthorizationSchema } from '../policies/network-authorization.ts'
import { checkScopes, checkSharedLimits, type LocatedLimits } from '../policies/rate-limit/shared-limits.ts'
import { allVariables, celVariablesOf } from '../policies/registry/cel-variables.ts'
import { checkCosts, checkPolicyBackends, checkRoutePolicies } from '../policies/registry/check.ts'
import { checkNoBody } from '../policies/registry/expressions.ts'
import { localVariantsOf } from '../policies/registry/limit-variants.ts'
import { llmPoliciesSchema, routePolicyFields } from '../policies/registry/schema.ts'
import { hostPort, type Infer, integer, list, name, object, optional, string } from '../schema/dsl.ts'
import { jsonSchemaOf } from '../schema/json-schema.ts'
import type { Path } from '../schema/path.ts'
import type { ReportIssue } from '../schema/report.ts'
import { findBackend, hasServers } from '../upstream/config.ts'
import { missingBackend } from '../upstream/destination.ts'
import { bindsSchema } from './compat/binds.ts'
import {
  checkConnections,
  connectionFields,
  frontendTcpSchema,
  frontendTlsSchema,
} from './frontend/connections.ts'
import { jsonLimits } from './frontend/json-limits.ts'
import { checkTermination, terminationFields } from './frontend/termination.ts'
import { checkMcpForwarding, mcpForwardingFields } from './mcp/mcp.ts'
import { type LocatedScope, policyScopes } from './policy-scopes.ts'
import { checkPorts, portsOf } from './ports.ts'
import { processLimitsSchema } from './process-limits.ts'
import { checkStorage, databaseSchema, storageSchema } from './storage-config.ts'
import { accessLogSchema, loggingFields } from './telemetry/access-log-config.ts'
import { checkTelemetry } from './telemetry/check-telemetry.ts'
import { processTelemetryFields } from './telemetry/process-telemetry.ts'
import { tracingSchema } from './telemetry/tracing-config.ts'
import type { ListenerPlan } from './traffic/attachments.ts'
import { checkAttachment } from './traffic/check-attachment.ts'
import { checkTls } from './traffic/check-gateways.ts'
import { checkTraffic } from './traffic/check-traffic.ts'
import { type CheckedRoutes, createCheckedRoutes } from './traffic/checked-routes.ts'
import { gatewaysSchema, tlsSchema } from './traffic/gateway-config.ts'
import { backendsSchema, routeGroupsSchema, routesSchema } from './traffic/route-config.ts'
import { type TrafficSections, trafficSections } from './traffic/sections.ts'
import { checkProxyProtocol, proxyProtocolSchema } from './tunnels/tunnels.ts'
import { checkUi, uiSchema } from './ui-config.ts'
import { workerThreadsSchema } from './worker-threads.ts'

const maxBufferBytes = 1024 * 1024 * 1024

const logging = object(
  {
    ...loggingFields,
    explain: optional(explainSchema),
    database: optional(ledgerSchema),
  },
  {
    doc: 'The log on standard output, JSON lines, and the ledger of requests in a database. `level` also applies on reload.',
  },
)

const processSettings = object(
  {
    adminAddr: optional(
      hostPort({
        doc: 'Admin address. It has no authentication and must stay on loopback.',
        default: '127.0.0.1:15000',
      }),
    ),
    statsAddr: optional(hostPort({ doc: 'Serves Prometheus metrics on `/metrics`.', default: '[::]:15020' })),
    readinessAddr: optional(hostPort({ doc: 'Serves `/healthz/ready`.', default: '[::]:15021' })),
    bindAddress: optional(
      string({ doc: 'IP address that listeners bind to.', default: '::', example: '127.0.0.1' }),
    ),
    workerThreads: optional(workerThreadsSchema),
    ...terminationFields,
    logging: optional(logging),
    ...processTelemetryFields,
    standardAttributes: optional(standardAttributesSchema),
    customFunctions: optional(
      string({
        doc: 'CEL functions for all expressions: `name(a, b) { expression }`, or `this.name(a) { expression }` for methods. They must not have names of CEL, nor call themselves. Changes apply on reload.',
        example: 'isRead() { request.method in ["GET", "HEAD"] }',
        advanced: true,
      }),
    ),
    limits: optional(processLimitsSchema),
    mcp: optional(mcpSettingsSchema),
    session: optional(sessionSettingsSchema),
    storage: optional(storageSchema),
    database: optional(databaseSchema),
    responseCache: optional(cacheDatabaseSchema),
    modelCatalog: optional(modelCatalogSchema),
  },
  {
    doc: 'Settings of the process, read at start. `logging.level`, `tracing` and `modelCatalog` also apply on reload.',
  },
)

const frontendPolicies = object(
  {
    http: optional(
      object(
        {
          trustedProxies: optional(
            list(name({ doc: 'An address, or a range such as `10.0.0.0/8`.', example: '10.0.0.0/8' }), {
              doc: 'Proxies in front of the gateway whose `x-forwarded-*` and `forwarded` headers identify the client. They must set or remove `x-forwarded-proto` and `x-forwarded-host`. These headers are ignored from all other peers.',
            }),
          ),
          allowedHosts: optional(
            list(
              name({ doc: 'A hostname, `*.example.com` or `*`, without port.', example: 'ai.example.com' }),
              {
                doc: 'Hosts that clients on this machine or in private networks may name on LLM and MCP routes without authentication, beside addresses, local names and hostnames of listeners and routes. Web pages reach such routes through names of their own (DNS rebinding) otherwise.',
              },
            ),
          ),
          maxBufferSize: optional(
            integer(
              {
                doc: 'Largest request body that is read, in bytes; larger ones are answered with 413.',
                default: 33_554_432,
              },
              { min: 1, max: maxBufferBytes },
            ),
          ),
          maxMcpMessageSize: optional(
            integer(
              {
                doc: 'Largest message of an MCP client that is read, in bytes; larger ones are answered with 413. `maxBufferSize` is a bound as well. Messages are decoded in one step, so a larger value makes other requests wait: 32 MiB take up to 80 ms.',
                default: defaultMaxMessageBytes,
              },
              { min: 1, max: maxBufferBytes },
            ),
          ),
          json: optional(jsonLimits),
          ...connectionFields,
        },
        { doc: 'HTTP requests and connections.' },
      ),
    ),
    networkAuthorization: optional(networkAuthorizationSchema),
    accessLog: optional(accessLogSchema),
    proxyProtocol: optional(proxyProtocolSchema),
    proxy: optional(proxyProtocolSchema),
    tls: optional(frontendTlsSchema),
    tcp: optional(frontendTcpSchema),
    tracing: optional(tracingSchema),
  },
  { doc: 'Settings of all listeners.' },
)

/** The configuration file. */
export const configSchema = object(
  {
    config: optional(processSettings),
    frontendPolicies: optional(frontendPolicies),
    gateways: optional(gatewaysSchema),
    routes: optional(routesSchema),
    routeGroups: optional(routeGroupsSchema),
    tcpRoutes: optional(
      list(tcpRouteSchema, { doc: 'Where connections on gateways of protocol `TCP` or `TLS` go.' }),
    ),
    backends: optional(backendsSchema),
    binds: optional(bindsSchema),
    ui: optional(uiSchema),
    llm: optional(
      object(
        {
          ...guardedLlmFields({ guardrails: guardrailsSchema, authorization: authorizationSchema }),
          guardrails: optional(guardrailsSchema),
          tls: optional(tlsSchema),
          policies: optional(llmPoliciesSchema),
        },
        { doc: 'The LLM endpoint: models, keys, limits and rules.' },
      ),
    ),
    mcp: optional(
      object(
        {
          ...mcpFields,
          policies: optional(
            object(
              { ...routePolicyFields, ...mcpForwardingFields },
              { doc: 'Authentication, authorization, limits and forwarding of the MCP servers.' },
            ),
          ),
        },
        { doc: 'The MCP endpoint: servers behind it, authentication and rules.' },
      ),
    ),
  },
  { doc: 'Configuration of Tollgate.' },
)

export type Config = Infer<typeof configSchema>

/** JSON Schema of the configuration file, for editors. */
export function configJsonSchema(): object {
  return jsonSchemaOf(configSchema, { title: 'Tollgate configuration' })
}

/** Checks rules across the file, beyond the schema. */
export function checkConfig(config: Config, report: ReportIssue): void {
  runToCompletion(configChecks(config, report, createCheckedRoutes()))
}

/** The steps of `checkConfig`. Routes in `checked` are skipped. */
export function* configChecks(
  config: Config,
  report: ReportIssue,
  checked: CheckedRoutes,
): Generator<void, void> {
  const under =
    (...prefix: Path) =>
    (path: Path, message: string) =>
      report([...prefix, ...path], message)
  const { adminAddr } = config.config ?? {}
  if (adminAddr !== undefined && !isLoopback(adminAddr)) {
    report(
      ['config', 'adminAddr'],
      'the admin address has no authentication and must stay on loopback (127.0.0.1, localhost or [::1]); ' +
        'use ui.gateways to serve it elsewhere with authentication',
    )
  }
  const sections = trafficSections(config)
  yield* checkTraffic(sections, report, checked)
  checkPorts(config, sections, report)
  for (const name of ['llm', 'mcp'] as const) {
    const section = config[name]
    if (section === undefined) continue
    if (section.port !== undefined && section.gateways !== undefined) {
      report([name, 'port'], 'must not be set together with gateways')
    } else if (portsOf({ ...config, gateways: sections.gateways })[name] === undefined) {
      const attachment = { references: section.gateways, path: [name], needs: 'http' } as const
      const listeners = checkAttachment(attachment, sections.gateways, (path, message) =>
        report(path, message),
      )
      if (name === 'mcp') checkMcpListeners(listeners, sections, report)
    }
  }
  if (config.ui) {
    checkUi(config.ui, under('ui'))
    const attachment = { references: config.ui.gateways, path: ['ui'], needs: 'http' } as const
    checkAttachment(attachment, sections.gateways, (path, message) => report(path, message))
  }
  checkBackendReferences(config, sections, report)
  config.frontendPolicies?.http?.trustedProxies?.forEach((text, index) => {
    if (parseCidr(text) === undefined) {
      report(
        ['frontendPolicies', 'http', 'trustedProxies', index],
        `expected an IP address or a range such as 10.0.0.0/8, got "${text}"`,
      )
    }
  })
  config.frontendPolicies?.http?.allowedHosts?.forEach((hostname, index) => {
    const mistake = hostnameMistake(hostname)
    if (mistake !== undefined) report(['frontendPolicies', 'http', 'allowedHosts', index], mistake)
  })
  if (config.frontendPolicies?.networkAuthorization)
    checkNetworkAuthorization(
      config.frontendPolicies.networkAuthorization,
      under('frontendPolicies', 'networkAuthorization'),
    )
  checkTelemetry(config, sections.backends, under())
  if (config.frontendPolicies) {
    checkProxyProtocol(config.frontendPolicies, under('frontendPolicies'))
    checkConnections(config.frontendPolicies, under('frontendPolicies'))
  }
  const scopes = policyScopes(config, sections)
  yield
  const reportWritten: ReportIssue = (path, message) => report(sections.written(path), message)
  checkSharedLimits(scopes.flatMap(limitsOf), reportWritten)
  const database = config.config?.logging?.database?.url ?? config.config?.database?.url
  if (database === undefined) checkScopes(scopes.flatMap(limitsOf), reportWritten)
  yield
  for (const { policies, path } of scopes) {
    const reportPolicy: ReportIssue = (at, message) => report(sections.written([...path, ...at]), message)
    checkPolicyBackends(policies, sections.backends, reportPolicy)
    if (!mayHavePrices(config)) checkCosts(policies, reportPolicy)
  }
  checkStorage(config.config ?? {}, under('config'))
  checkCacheDatabase(config.config ?? {}, under('config'))
  if (cacheDatabaseOf(config.config ?? {}) === undefined)
    checkCacheStores({ llm: config.llm, ...sections }, reportWritten)
  checkTermination(config.config ?? {}, under('config'))
  checkLedger(config.config ?? {}, under('config'))
  const { customFunctions } = config.config ?? {}
  if (customFunctions !== undefined)
    checkCustomFunctions(customFunctions, allVariables, (message) =>
      under('config')(['customFunctions'], message),
    )
  if (config.config?.modelCatalog)
    checkModelCatalog(config.config.modelCatalog, under('config', 'modelCatalog'))
  const { session, mcp: mcpSettings } = config.config ?? {}
  if (session?.key !== undefined) checkSessionKey(session.key, under('config', 'session', 'key'))
  if (mcpSettings?.sessionTtl !== undefined) {
    checkSessionTtl(mcpSettings.sessionTtl, under('config', 'mcp', 'sessionTtl'))
  }
  if (config.mcp) checkMcp(config.mcp, under('mcp'))
  if (config.mcp?.policies) {
    checkRoutePolicies(config.mcp.policies, 'mcp', under('mcp', 'policies'))
    checkMcpForwarding(config.mcp.policies, sections.backends, under('mcp', 'policies'))
  }
  if (config.llm) checkLlm(config.llm, under('llm'))
  if (config.llm && !mayHavePrices(config)) checkPreferredCosts(config.llm, under('llm'))
  checkOwnTls(config, sections, under('llm', 'tls'))
  config.llm?.models.forEach(({ authorization }, index) => {
    if (authorization === undefined) return
    checkAuthorization(authorization, celVariablesOf('llm'), under('llm', 'models', index, 'authorization'))
  })
  for (const { config: guardrails, path } of guardrailsOf(config)) {
    checkGuardrails(guardrails, sections.backends, under(...path))
  }
  if (config.llm?.policies) checkRoutePolicies(config.llm.policies, 'llm', under('llm', 'policies'))
}

/** The local limits of a scope, in both places. */
function limitsOf({ policies, path }: LocatedScope): LocatedLimits[] {
  const { localRateLimit, rateLimit } = policies
  return [
    ...localVariantsOf(localRateLimit).map(({ limits, at }) => ({
      limits,
      at: (part: Path) => [...path, 'localRateLimit', ...at(part)],
    })),
    { limits: rateLimit?.local ?? [], at: (part: Path) => [...path, 'rateLimit', 'local', ...part] },
  ]
}

function checkOwnTls(config: Config, { gateways }: TrafficSections, report: ReportIssue): void {
  if (config.llm?.tls === undefined) return
  checkTls(config.llm.tls, report)
  if (portsOf({ ...config, gateways }).llm === undefined)
    report([], 'is only valid with llm.port: set tls on the gateway')
}

/** Reports listener policies that do not apply to the `mcp` section. */
function checkMcpListeners(
  listeners: readonly ListenerPlan[],
  { written }: TrafficSections,
  report: ReportIssue,
): void {
  for (const { config, path } of listeners) {
    checkNoBody(config, 'the mcp section', (at, message) => report(written([...path, ...at]), message))
  }
}

/** All guards of the `llm` section. */
function guardrailsOf({ llm }: Config): { config: GuardrailsConfig; path: Path }[] {
  const places = [
    { config: llm?.guardrails, path: ['llm', 'guardrails'] },
    { config: llm?.policies?.guardrails, path: ['llm', 'policies', 'guardrails'] },
    ...(llm?.models ?? []).map(({ guardrails }, index) => ({
      config: guardrails,
      path: ['llm', 'models', index, 'guardrails'],
    })),
  ]
  return places.flatMap(({ config, path }) => (config === undefined ? [] : [{ config, path }]))
}

function isLoopback(address: string): boolean {
  return isLoopbackHost(parseHostPort(address)?.host ?? '')
}

function checkBackendReferences({ mcp }: Config, { backends }: TrafficSections, report: ReportIssue): void {
  for (const { reference, path } of mcp ? backendReferences(mcp) : []) {
    const found = findBackend(reference, backends)
    if (found === undefined || !hasServers(found)) report(['mcp', ...path], missingBackend(reference, found))
  }
}

/** Whether the configuration has a catalog, or may have one in the database, which is read later. */
function mayHavePrices({ config }: Config): boolean {
  return config?.modelCatalog !== undefined || config?.storage?.mode === 'hybrid'
}
