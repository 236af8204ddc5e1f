import { checkForwardingPolicies, checkRouteBackends } from '../../backends/http/config.ts'
import { checkLlmBackend, checkLlmPolicy } from '../../backends/llm/config/check-backend.ts'
import { backendReferences, checkMcpBackend } from '../../backends/mcp/check-config.ts'
import type { McpBackendConfig } from '../../backends/mcp/config.ts'
import { checkTargetHealth } from '../../backends/mcp/targets/upstream.ts'
import { checkTcpRoute } from '../../backends/tcp/config.ts'
import { attachedHostnames, hostnameMistake } from '../../pipeline/routing/hostnames.ts'
import { checkMatch } from '../../pipeline/routing/route-match.ts'
import { checkRegexMatches } from '../../pipeline/routing/route-table.ts'
import { checkGuardrails } from '../../policies/guardrails/config.ts'
import { checkBackendScope } from '../../policies/registry/backend-scope.ts'
import { checkRoutePolicies, respondsAlways } from '../../policies/registry/check.ts'
import { checkNoBody } from '../../policies/registry/expressions.ts'
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendPolicies, checkNamedBackends } from '../../upstream/check.ts'
import { findBackend, hasServers, requestPolicyOf } from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'
import { type ListenerPlan, listenersAt, referencesOf } from './attachments.ts'
import { checkAttachment } from './check-attachment.ts'
import { checkGateways } from './check-gateways.ts'
import type { CheckedRoutes } from './checked-routes.ts'
import { routeMatchOf } from './compile-route-match.ts'
import type { RouteConfig } from './route-config.ts'
import { checkDelegating, checkDynamicAuth, checkRouteGroups } from './route-groups/check-route-groups.ts'
import { delegates } from './route-groups/route-groups.ts'
import { kindOfBackend, kindOfRoute, nameOfRoute, nameOfTcpRoute } from './route-kind.ts'
import type { TrafficSections } from './sections.ts'

/**
 * Checks rules beyond the schema on gateways, routes, TCP routes and backends, in steps. Routes in `checked`
 * are skipped.
 */
export function* checkTraffic(
  sections: TrafficSections,
  reportWritten: ReportIssue,
  checked: CheckedRoutes,
): Generator<void, void> {
  const report: ReportIssue = (path, message) => reportWritten(sections.written(path), message)
  const under =
    (...prefix: Path): ReportIssue =>
    (path, message) =>
      report([...prefix, ...path], message)
  for (const { path, message } of sections.clashes) reportWritten(path, message)
  checkGateways(sections.gateways, report)
  checkNamedBackends(sections.backends, under('backends'))
  sections.backends.forEach(({ mcp, ai, policies }, index) => {
    checkBackendScope(policies, kindOfBackend({ mcp, ai }), under('backends', index, 'policies'))
    if (mcp !== undefined) checkTargetHealth(policies?.health, under('backends', index, 'policies', 'health'))
    if (mcp !== undefined) checkMcp(mcp, sections, under('backends', index, 'mcp'))
    if (ai !== undefined) checkLlmBackend(ai, under('backends', index, 'ai'))
  })
  checkNames(sections.routes.map(nameOfRoute), under('routes'))
  const valid = checked.beside(sections)
  for (const [index, route] of sections.routes.entries()) {
    if (valid.has(route)) continue
    let isValid = true
    checkRoute(route, sections, (path, message) => {
      isValid = false
      report(['routes', index, ...path], message)
    })
    if (isValid) valid.add(route)
    yield
  }
  checkRouteGroups(
    sections,
    (route, reportChild) => {
      if (valid.has(route)) return
      let isValid = true
      checkParts(route, sections, (path, message) => {
        isValid = false
        reportChild(path, message)
      })
      if (isValid) valid.add(route)
    },
    under('routeGroups'),
  )
  checkMcpRoutes(sections, report)
  yield
  checkRegexes(sections, report)
  checkNames(sections.tcpRoutes.map(nameOfTcpRoute), under('tcpRoutes'))
  sections.tcpRoutes.forEach((route, index) => {
    const path: Path = ['tcpRoutes', index]
    checkTcpRoute(route, sections.backends, under(...path))
    const listeners = checkAttachment(
      { references: route.gateways, path, needs: 'tcp' },
      sections.gateways,
      report,
    )
    checkServerNames(route.hostnames, listeners, under(...path))
  })
}

/** Reports listener policies that do not apply to MCP routes. */
function checkMcpRoutes({ routes, backends, gateways }: TrafficSections, report: ReportIssue): void {
  const reported = new Set<ListenerPlan['config']>()
  routes.forEach((route, index) => {
    if (kindOfRoute(route, backends) !== 'mcp') return
    for (const reference of referencesOf(route.gateways, gateways) ?? []) {
      for (const { config, path } of listenersAt(reference, gateways) ?? []) {
        if (reported.has(config)) continue
        reported.add(config)
        checkNoBody(config, `route ${nameOfRoute(route, index)}`, (at, message) =>
          report([...path, ...at], message),
        )
      }
    }
  })
}

/** Names identify routes in logs, metrics and counters. */
function checkNames(names: readonly string[], report: ReportIssue): void {
  const seen = new Set<string>()
  names.forEach((name, index) => {
    if (seen.has(name)) report([index, 'name'], `another route is named "${name}"`)
    seen.add(name)
  })
}

function checkRoute(route: RouteConfig, sections: TrafficSections, report: ReportIssue): void {
  const attachment = { references: route.gateways, path: [], needs: 'http' } as const
  const listeners = checkAttachment(attachment, sections.gateways, report)
  checkHostnames(route.hostnames ?? [], listeners, report)
  checkParts(route, sections, report)
}

/** Checks a route apart from its gateways. */
function checkParts(route: RouteConfig, sections: TrafficSections, report: ReportIssue): void {
  const { hostnames = [], matches = [], policies, backends = [] } = route
  hostnames.forEach((hostname, index) => {
    const mistake = hostnameMistake(hostname)
    if (mistake !== undefined) report(['hostnames', index], mistake)
  })
  matches.forEach((match, index) => {
    checkMatch(routeMatchOf(match), (inner, message) => report(['matches', index, ...inner], message))
  })
  checkBackends(route, sections, report)
  if (delegates(route)) checkDelegating(route, sections, report)
  if (policies === undefined) return
  const kind = kindOfRoute(route, sections.backends)
  const reportPolicy: ReportIssue = (inner, message) => report(['policies', ...inner], message)
  checkRoutePolicies(policies, kind, reportPolicy)
  checkForwardingPolicies(policies, sections.backends, reportPolicy)
  const { backendTLS, backendAuth, backendTunnel } = policies
  checkBackendPolicies({ backendTLS, backendAuth, backendTunnel }, reportPolicy)
  if (policies.ai?.promptGuard) {
    checkGuardrails(policies.ai.promptGuard, sections.backends, (at, message) =>
      reportPolicy(['ai', 'promptGuard', ...at], message),
    )
  }
  if (policies.ai) checkLlmPolicy(policies.ai, (at, message) => reportPolicy(['ai', ...at], message))
  if (policies.ai && policies.ai.appliesTo === undefined && kind !== 'llm') {
    reportPolicy(
      ['ai'],
      'is only valid with ai backends (LLM providers), and this route has none: set appliesTo: llm for routes of every kind',
    )
  }
  if (kind === 'llm') checkNoForwarding(policies, reportPolicy)
  const prefixes = matches.every(
    ({ path: matched }) => matched?.exact === undefined && matched?.regex === undefined,
  )
  if (policies.urlRewrite?.path?.prefix !== undefined && !prefixes) {
    reportPolicy(['urlRewrite', 'path', 'prefix'], 'requires pathPrefix in every match of the route')
  }
  if (policies.requestRedirect?.path?.prefix !== undefined && !prefixes) {
    reportPolicy(['requestRedirect', 'path', 'prefix'], 'requires pathPrefix in every match of the route')
  }
  if (backends.length > 0 && respondsAlways(policies)) {
    const which = policies.directResponse === undefined ? 'requestRedirect' : 'directResponse'
    reportPolicy([which], 'responds to every request: the backends of this route would be unused')
  }
}

const ofForwarding = ['retry', 'requestMirror'] as const

function checkNoForwarding(policies: object, report: ReportIssue): void {
  const instead = 'an ai backend fails over to its next group of providers'
  for (const name of ofForwarding) {
    if (name in policies) report([name], `is only valid for HTTP and mcp backends, not for ai; ${instead}`)
  }
}

function checkBackends(route: RouteConfig, sections: TrafficSections, report: ReportIssue): void {
  const { backends = [] } = route
  checkDynamicAuth(route, report)
  checkRouteBackends(backends, sections.backends, (path, message) => report(['backends', ...path], message))
  backends.forEach((entry, index) => {
    const named = entry.backend === undefined ? undefined : findBackend(entry.backend, sections.backends)
    const { mcp, ai } = named ?? entry
    const reportScope: ReportIssue = (path, message) =>
      report(['backends', index, 'policies', ...path], message)
    checkBackendScope(entry.policies, kindOfBackend({ mcp, ai }), reportScope)
    const policy = entry.error === undefined ? undefined : requestPolicyOf(entry)
    if (policy !== undefined) reportScope([policy], 'is not valid for an error, which receives no request')
    if (entry.mcp !== undefined)
      checkMcp(entry.mcp, sections, (path, message) => report(['backends', index, 'mcp', ...path], message))
    if (entry.ai !== undefined)
      checkLlmBackend(entry.ai, (path, message) => report(['backends', index, 'ai', ...path], message))
    const llmPolicy = entry.policies?.ai
    if (llmPolicy !== undefined) {
      const reportPolicy: ReportIssue = (path, message) =>
        report(['backends', index, 'policies', 'ai', ...path], message)
      if (ai === undefined) reportPolicy([], 'is only valid on ai backends (LLM providers)')
      checkLlmPolicy(llmPolicy, reportPolicy)
      if (llmPolicy.promptGuard) {
        checkGuardrails(llmPolicy.promptGuard, sections.backends, (path, message) =>
          reportPolicy(['promptGuard', ...path], message),
        )
      }
    }
    const reportHealth: ReportIssue = (path, message) => reportScope(['health', ...path], message)
    if (mcp !== undefined) checkTargetHealth(entry.policies?.health, reportHealth)
    const others = backends.filter((other) => other !== entry && other.error === undefined)
    if ((mcp ?? ai) !== undefined && others.length > 0) {
      const kind = mcp === undefined ? 'ai' : 'mcp'
      const instead = kind === 'ai' ? 'groups of one ai backend' : 'targets of one mcp backend'
      report(
        ['backends', index],
        `a route with an ${kind} backend must have no other backend: use ${instead}`,
      )
    }
  })
}

function checkMcp(mcp: McpBackendConfig, { backends }: TrafficSections, report: ReportIssue): void {
  checkMcpBackend(mcp, report)
  for (const { reference, path } of backendReferences(mcp)) {
    const found = findBackend(reference, backends)
    if (found === undefined || !hasServers(found)) report(path, missingBackend(reference, found))
  }
}

/** Reports a route that matches no host of its listeners: it would receive no request. */
function checkHostnames(
  hostnames: readonly string[],
  listeners: readonly ListenerPlan[],
  report: ReportIssue,
): void {
  if (listeners.length === 0 || hostnames.length === 0) return
  if (hostnames.some((hostname) => hostnameMistake(hostname) !== undefined)) return
  if (listeners.some(({ hostname }) => attachedHostnames(hostname, hostnames) !== undefined)) return
  const hosts = listeners.map(({ place, hostname }) => `${place} is for ${hostname ?? 'all'}`)
  report(['hostnames'], `must match a host of a listener of the route: ${hosts.join(', ')}`)
}

function checkServerNames(
  hostnames: readonly string[] = [],
  listeners: readonly ListenerPlan[],
  report: ReportIssue,
): void {
  const plain = listeners.find(({ protocol }) => protocol === 'TCP')
  if (hostnames.length > 0 && plain !== undefined) {
    report(['hostnames'], `plain TCP has no server name: ${plain.place} must use TLS`)
  }
  checkHostnames(hostnames, listeners, report)
}

function checkRegexes({ routes }: TrafficSections, report: ReportIssue): void {
  const entries = routes.map(({ hostnames = [], matches = [] }) => ({
    hostnames,
    matches: matches.filter(({ path }) => path?.regex !== undefined).map(routeMatchOf),
  }))
  checkRegexMatches(entries, (index, message) => report(['routes', index, 'matches'], message))
}
