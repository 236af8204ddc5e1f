import { referencesField } from '../../cel/references.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { checkApiKey } from '../api-key/api-key.ts'
import { checkAuthorization } from '../authorization.ts'
import { checkBasicAuth } from '../basic-auth/basic-auth.ts'
import { checkBudgets, countsMoney } from '../budgets/config.ts'
import { checkCors } from '../cors.ts'
import { checkCsrf } from '../csrf.ts'
import { checkDirectResponse } from '../direct-response.ts'
import { checkHeaderModifier } from '../header-modifier.ts'
import { checkJwtAuth } from '../jwt-auth.ts'
import { checkMcpAuthentication } from '../mcp-authentication/check-config.ts'
import { checkMcpAuthorization } from '../mcp-authorization.ts'
import { checkOidc } from '../oidc/config.ts'
import {
  checkGlobalBackend,
  checkGlobalRateLimit,
  countsTokens as countsTokensGlobally,
  type GlobalRateLimitConfig,
} from '../rate-limit/global/config.ts'
import { checkLocalRateLimit, countsTokens, type LocalRateLimitConfig } from '../rate-limit/local-config.ts'
import { checkRequestRedirect } from '../url/redirect.ts'
import { checkUrlRewrite } from '../url/rewrite.ts'
import { celVariablesOf, type TrafficKind } from './cel-variables.ts'
import type { PoliciesConfig } from './schema.ts'

/**
 * Reports errors beyond the schema in the policies of a gateway or listener, which apply to requests of every
 * kind.
 */
export function checkGatewayPolicies(config: PoliciesConfig, report: ReportIssue) {
  check(config, 'gateway', report)
}

/**
 * Reports errors in the policies of a route, `llm` or `mcp`, including policies without effect on its kind of
 * traffic.
 */
export function checkRoutePolicies(config: PoliciesConfig, kind: TrafficKind, report: ReportIssue) {
  check(config, kind, report)
}

function check(config: PoliciesConfig, kind: TrafficKind | 'gateway', report: ReportIssue) {
  const variables = celVariablesOf(kind)
  const variablesOf = ({ appliesTo }: { appliesTo?: 'llm' | undefined }) =>
    appliesTo === undefined ? variables : celVariablesOf(appliesTo)
  const under =
    (...prefix: string[]): ReportIssue =>
    (path, message) =>
      report([...prefix, ...path], message)
  const checkLimits = (limits: LocalRateLimitConfig, reportLimit: ReportIssue) => {
    checkLocalRateLimit(limits, variablesOf, reportLimit)
    const counted = limits.map((limit) => limit.appliesTo === undefined && countsTokens(limit))
    checkCounted(counted, kind, reportLimit)
  }

  if (config.cors) checkCors(config.cors, under('cors'))
  if (config.csrf) checkCsrf(config.csrf, under('csrf'))
  if (config.basicAuth) checkBasicAuth(config.basicAuth, under('basicAuth'))
  if (config.oidc) checkOidc(config.oidc, under('oidc'))
  if (config.jwtAuth) checkJwtAuth(config.jwtAuth, under('jwtAuth'))
  if (config.mcpAuthentication) checkMcpAuthentication(config.mcpAuthentication, under('mcpAuthentication'))
  if (config.apiKey) checkApiKey(config.apiKey, under('apiKey'))
  if (config.authorization) checkAuthorization(config.authorization, variables, under('authorization'))
  if (config.mcpAuthorization) checkMcpAuthorization(config.mcpAuthorization, under('mcpAuthorization'))
  if (config.localRateLimit) checkLimits(config.localRateLimit, under('localRateLimit'))
  if (config.rateLimit?.local) checkLimits(config.rateLimit.local, under('rateLimit', 'local'))
  if (config.localRateLimit && config.rateLimit?.local) {
    report(['rateLimit', 'local'], 'is the same as localRateLimit: keep one of them')
  }
  const checkGlobal = (limits: GlobalRateLimitConfig, reportLimit: ReportIssue) => {
    checkGlobalRateLimit(limits, variablesOf(limits), reportLimit)
    const counted = limits.appliesTo === undefined ? limits.descriptors.map(countsTokensGlobally) : []
    checkCounted(counted, kind, (path, message) => reportLimit(['descriptors', ...path], message))
  }
  if (config.remoteRateLimit) checkGlobal(config.remoteRateLimit, under('remoteRateLimit'))
  if (config.rateLimit?.global) checkGlobal(config.rateLimit.global, under('rateLimit', 'global'))
  if (config.remoteRateLimit && config.rateLimit?.global) {
    report(['rateLimit', 'global'], 'is the same as remoteRateLimit: keep one of them')
  }
  if (config.budgets) checkBudgets(config.budgets, celVariablesOf('llm'), under('budgets'))
  checkTraffic(config, under)
  checkKind(config, kind, report)
}

/** Reports references of policies to unknown backends or backends without a host. */
export function checkPolicyBackends(
  { remoteRateLimit, rateLimit }: PoliciesConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
) {
  if (remoteRateLimit)
    checkGlobalBackend(remoteRateLimit, backends, (path, message) =>
      report(['remoteRateLimit', ...path], message),
    )
  if (rateLimit?.global)
    checkGlobalBackend(rateLimit.global, backends, (path, message) =>
      report(['rateLimit', 'global', ...path], message),
    )
}

/** Reports costs in US dollars if the configuration has no model catalog with prices. */
export function checkCosts({ remoteRateLimit, rateLimit, budgets }: PoliciesConfig, report: ReportIssue) {
  budgets?.forEach((budget, index) => {
    if (countsMoney(budget))
      report(
        ['budgets', index, 'limit', 'usd'],
        'calls have no cost without prices: set config.modelCatalog, or use tokens',
      )
  })
  const [limits, path] =
    remoteRateLimit === undefined
      ? [rateLimit?.global, ['rateLimit', 'global']]
      : [remoteRateLimit, ['remoteRateLimit']]
  limits?.descriptors.forEach(({ cost }, index) => {
    if (cost === undefined || !referencesField(cost, 'llm', 'cost')) return
    report(
      [...path, 'descriptors', index, 'cost'],
      'llm.cost has no value without prices: set config.modelCatalog, or count tokens',
    )
  })
}

/** Checks policies that modify requests and replies. */
function checkTraffic(config: PoliciesConfig, under: (...prefix: string[]) => ReportIssue) {
  const { requestHeaderModifier, responseHeaderModifier, requestRedirect, directResponse, urlRewrite } =
    config
  if (requestHeaderModifier) {
    checkHeaderModifier(requestHeaderModifier, 'request', under('requestHeaderModifier'))
  }
  if (responseHeaderModifier) {
    checkHeaderModifier(responseHeaderModifier, 'response', under('responseHeaderModifier'))
  }
  if (requestRedirect) checkRequestRedirect(requestRedirect, under('requestRedirect'))
  if (directResponse) checkDirectResponse(directResponse, under('directResponse'))
  if (urlRewrite) checkUrlRewrite(urlRewrite, under('urlRewrite'))
  if (requestRedirect && directResponse) {
    under('directResponse')([], 'never answers, because requestRedirect does: keep one of them')
  }
}

/** Whether a policy replaces the matched prefix, which requires a prefix match. */
export function replacesPrefix({ requestRedirect, urlRewrite }: PoliciesConfig): boolean {
  return requestRedirect?.path?.prefix !== undefined || urlRewrite?.path?.prefix !== undefined
}

/** Reports token limits on traffic without tokens. On a gateway they apply only to LLM requests. */
function checkCounted(tokens: readonly boolean[], kind: TrafficKind | 'gateway', report: ReportIssue) {
  if (kind === 'llm' || kind === 'gateway') return
  tokens.forEach((counted, index) => {
    if (!counted) return
    const requests = kind === 'mcp' ? 'MCP requests' : 'plain HTTP requests'
    report([index], `${requests} have no tokens: limit requests instead, or set appliesTo: llm`)
  })
}

const llmOnly = ['budgets'] as const
const mcpOnly = ['mcpAuthentication', 'mcpAuthorization'] as const

function checkKind(config: PoliciesConfig, kind: TrafficKind | 'gateway', report: ReportIssue) {
  if (kind !== 'llm' && kind !== 'gateway') {
    for (const field of llmOnly)
      if (config[field] !== undefined) report([field], 'is for LLM requests, and this leads to none')
  }
  if (kind === 'mcp') {
    if (config.urlRewrite !== undefined)
      report(['urlRewrite'], 'the address of an MCP server is that of its target')
    return
  }
  for (const field of mcpOnly) {
    if (config[field] !== undefined) report([field], 'is for MCP servers, and this leads to none')
  }
}
