import { referencesField } from '../../cel/references.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { checkApiKey } from '../api-key/api-key.ts'
import { checkAuthorization } from '../authorization.ts'
import { checkBasicAuth } from '../basic-auth/basic-auth.ts'
import { checkBudgets, countsMoney } from '../budgets/config.ts'
import { checkBuffer } from '../buffer.ts'
import { checkConditions, isConditional, variantsOf } from '../conditional.ts'
import { checkCors } from '../cors.ts'
import { checkCsrf } from '../csrf.ts'
import { checkDelay } from '../delay.ts'
import { checkDirectResponse } from '../direct-response.ts'
import { checkExtAuthz, checkExtAuthzBackend } from '../ext-authz/config.ts'
import { checkExtProc, checkExtProcBackend } from '../ext-proc/config.ts'
import { checkMcpGuardrails } from '../guardrails/mcp/config.ts'
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
import { countsMessages, describesMessages } from '../rate-limit/message-limits.ts'
import { checkTransformations, readsLlmRequest } from '../transformations/config.ts'
import { checkRequestRedirect } from '../url/redirect.ts'
import { checkUrlRewrite } from '../url/rewrite.ts'
import { celVariablesOf, earlyVariablesOf, headVariables, type TrafficKind } from './cel-variables.ts'
import { isAfterLlmRequest } from './expressions.ts'
import { localVariantsOf } from './limit-variants.ts'
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
  // Limits that read `mcp` count messages; they are evaluated by the backend.
  const limitVariables = kind === 'mcp' ? new Set([...variables, 'mcp']) : variables
  const variablesOf = ({ appliesTo }: { appliesTo?: 'llm' | undefined }) =>
    appliesTo === undefined ? limitVariables : celVariablesOf(appliesTo)
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
  if (config.extAuthz) {
    checkConditions(config.extAuthz, headVariables, under('extAuthz'))
    for (const { config: variant, path } of variantsOf(config.extAuthz))
      checkExtAuthz(variant, headVariables, (at, message) => report(['extAuthz', ...path, ...at], message))
  }
  if (config.authorization) checkAuthorization(config.authorization, variables, under('authorization'))
  if (config.mcpAuthorization) checkMcpAuthorization(config.mcpAuthorization, under('mcpAuthorization'))
  if (config.localRateLimit) {
    const reportLimits = under('localRateLimit')
    checkConditions(config.localRateLimit, headVariables, reportLimits)
    for (const { limits, at } of localVariantsOf(config.localRateLimit))
      checkLimits(limits, (path, message) => reportLimits(at(path), message))
    if (isConditional(config.localRateLimit))
      config.localRateLimit.conditional.forEach((limit, index) => {
        if (countsMessages(limit)) reportLimits(['conditional', index, 'key'], noMessageConditions)
      })
  }
  if (config.rateLimit?.local) checkLimits(config.rateLimit.local, under('rateLimit', 'local'))
  if (config.localRateLimit && config.rateLimit?.local) {
    report(['rateLimit', 'local'], 'is the same as localRateLimit: keep one of them')
  }
  const checkGlobal = (limits: GlobalRateLimitConfig, reportLimit: ReportIssue) => {
    checkGlobalRateLimit(limits, variablesOf(limits), reportLimit)
    const counted = limits.appliesTo === undefined ? limits.descriptors.map(countsTokensGlobally) : []
    checkCounted(counted, kind, (path, message) => reportLimit(['descriptors', ...path], message))
  }
  if (config.remoteRateLimit) {
    const reportLimits = under('remoteRateLimit')
    checkConditions(config.remoteRateLimit, headVariables, reportLimits)
    for (const { config: limits, path } of variantsOf(config.remoteRateLimit)) {
      checkGlobal(limits, (at, message) => reportLimits([...path, ...at], message))
      if (path.length > 0 && limits.descriptors.some(describesMessages))
        reportLimits([...path, 'descriptors'], noMessageConditions)
    }
  }
  if (config.rateLimit?.global) checkGlobal(config.rateLimit.global, under('rateLimit', 'global'))
  if (config.remoteRateLimit && config.rateLimit?.global) {
    report(['rateLimit', 'global'], 'is the same as remoteRateLimit: keep one of them')
  }
  if (config.budgets) checkBudgets(config.budgets, celVariablesOf('llm'), under('budgets'))
  if (config.extProc) {
    const reportExtProc = under('extProc')
    const early = { request: earlyVariablesOf(kind), reply: celVariablesOf(kind, 'reply') }
    checkConditions(config.extProc, early.request, reportExtProc)
    for (const { config: one, path } of variantsOf(config.extProc))
      checkExtProc(one, early, (at, message) => reportExtProc([...path, ...at], message))
  }
  checkTraffic(config, earlyVariablesOf(kind), under)
  if (config.buffer) checkBuffer(config.buffer, under('buffer'))
  if (config.delay) checkDelay(config.delay, variables, under('delay'))
  if (config.transformations) checkTransformed(config.transformations, kind, under('transformations'))
  checkKind(config, kind, report)
}

const noMessageConditions = 'limits of messages to MCP targets have no conditions: use the value of the key'

/** Reports references to unknown backends or backends without a host, and errors of MCP guards. */
export function checkPolicyBackends(
  { remoteRateLimit, rateLimit, extAuthz, extProc, mcpGuardrails }: PoliciesConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
) {
  for (const { config, path } of variantsOf(extAuthz))
    checkExtAuthzBackend(config, backends, (at, message) => report(['extAuthz', ...path, ...at], message))
  if (mcpGuardrails)
    checkMcpGuardrails(mcpGuardrails, backends, (path, message) =>
      report(['mcpGuardrails', ...path], message),
    )
  for (const { config, path } of variantsOf(remoteRateLimit))
    checkGlobalBackend(config, backends, (at, message) =>
      report(['remoteRateLimit', ...path, ...at], message),
    )
  if (rateLimit?.global)
    checkGlobalBackend(rateLimit.global, backends, (path, message) =>
      report(['rateLimit', 'global', ...path], message),
    )
  for (const { config, path } of variantsOf(extProc))
    checkExtProcBackend(config, backends, (at, message) => report(['extProc', ...path, ...at], message))
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
  const name = remoteRateLimit === undefined ? ['rateLimit', 'global'] : ['remoteRateLimit']
  for (const { config, path } of variantsOf(remoteRateLimit ?? rateLimit?.global)) {
    config.descriptors.forEach(({ cost }, index) => {
      if (cost === undefined || !referencesField(cost, 'llm', 'cost')) return
      report(
        [...name, ...path, 'descriptors', index, 'cost'],
        'llm.cost has no value without prices: set config.modelCatalog, or count tokens',
      )
    })
  }
}

function checkTransformed(
  config: NonNullable<PoliciesConfig['transformations']>,
  kind: TrafficKind | 'gateway',
  report: ReportIssue,
): void {
  const variables = { request: celVariablesOf(kind), response: celVariablesOf(kind, 'reply') }
  checkConditions(config, variables.request, report)
  for (const { config: one, path } of variantsOf(config)) {
    checkTransformations(one, variables, (at, message) => report([...path, ...at], message))
    if (one.request?.body !== undefined && (readsLlmRequest(one) || isAfterLlmRequest(config)))
      report(
        [...path, 'request', 'body'],
        'must not be set beside expressions over llmRequest or llm, which are parsed from it: use json(request.body)',
      )
  }
}

/** Checks policies that modify requests and replies. */
function checkTraffic(
  config: PoliciesConfig,
  variables: ReadonlySet<string>,
  under: (...prefix: string[]) => ReportIssue,
) {
  const { requestHeaderModifier, responseHeaderModifier, requestRedirect, directResponse, urlRewrite } =
    config
  if (requestHeaderModifier) {
    checkHeaderModifier(requestHeaderModifier, 'request', under('requestHeaderModifier'))
  }
  if (responseHeaderModifier) {
    checkHeaderModifier(responseHeaderModifier, 'response', under('responseHeaderModifier'))
  }
  if (requestRedirect) checkRequestRedirect(requestRedirect, under('requestRedirect'))
  if (directResponse) {
    const report = under('directResponse')
    checkConditions(directResponse, variables, report)
    for (const { config: one, path } of variantsOf(directResponse))
      checkDirectResponse(one, variables, (at, message) => report([...path, ...at], message))
  }
  if (urlRewrite) checkUrlRewrite(urlRewrite, under('urlRewrite'))
  if (requestRedirect && directResponse && !isConditional(directResponse)) {
    under('directResponse')([], 'never answers, because requestRedirect does: keep one of them')
  }
}

/** Whether a policy responds to every request, so that a backend would be unused. */
export function respondsAlways({ requestRedirect, directResponse }: PoliciesConfig): boolean {
  if (requestRedirect !== undefined) return true
  if (directResponse === undefined || !isConditional(directResponse)) return directResponse !== undefined
  return directResponse.conditional.at(-1)?.condition === undefined
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
const httpOnly = ['a2a', 'buffer'] as const
const mcpOnly = ['mcpAuthentication', 'mcpAuthorization', 'mcpGuardrails'] as const

function checkKind(config: PoliciesConfig, kind: TrafficKind | 'gateway', report: ReportIssue) {
  if (kind !== 'llm' && kind !== 'gateway') {
    for (const field of llmOnly)
      if (config[field] !== undefined) report([field], 'is for LLM requests, and this leads to none')
  }
  if (kind !== 'http' && kind !== 'gateway') {
    for (const field of httpOnly)
      if (config[field] !== undefined)
        report([field], 'is for routes to HTTP backends, and this leads to none')
  }
  if (kind === 'mcp') return
  for (const field of mcpOnly) {
    if (config[field] !== undefined) report([field], 'is for MCP servers, and this leads to none')
  }
}
