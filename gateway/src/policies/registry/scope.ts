import type { AuthenticationCheck } from '../../identity/authentication.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { McpCheck } from '../../pipeline/mcp/mcp-check.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { findBackend, type NamedBackend } from '../../upstream/config.ts'
import type { UpstreamContext } from '../../upstream/destination.ts'
import { compileA2a } from '../a2a/a2a.ts'
import { compileApiKey } from '../api-key/api-key.ts'
import { compileAuthorization } from '../authorization.ts'
import { compileBasicAuth } from '../basic-auth/basic-auth.ts'
import { compileBuffer } from '../buffer.ts'
import { compileConditional, isConditional, variantsOf } from '../conditional.ts'
import { type CorsConfig, compileCors } from '../cors.ts'
import { compileCsrf } from '../csrf.ts'
import { compileDelay } from '../delay.ts'
import { compileDirectResponse } from '../direct-response.ts'
import { compileExtAuthz } from '../ext-authz/ext-authz.ts'
import { compileExtProc } from '../ext-proc/ext-proc.ts'
import { compileRequestHeaderModifier, compileResponseHeaderModifier } from '../header-modifier.ts'
import { compileJwtAuth } from '../jwt-auth.ts'
import { compileMcpAuthentication } from '../mcp-authentication/mcp-authentication.ts'
import { compileMcpAuthorization, type McpAuthorization } from '../mcp-authorization.ts'
import { compileOidc } from '../oidc/oidc.ts'
import type { GlobalRateLimitConfig } from '../rate-limit/global/config.ts'
import { isLlmOnly, type LocalRateLimitConfig } from '../rate-limit/local-config.ts'
import { compileMessageLimits, countsMessages, describesMessages } from '../rate-limit/message-limits.ts'
import { compileTransformations } from '../transformations/transformations.ts'
import { compileRequestRedirect } from '../url/redirect.ts'
import { compileUrlRewrite } from '../url/rewrite.ts'
import { celVariablesOf, earlyVariablesOf, headVariables, type TrafficKind } from './cel-variables.ts'
import { isAfterLlmRequest, readsBodyEarly } from './expressions.ts'
import { compileGlobalLimits, compileLocalLimits } from './limit-variants.ts'
import type { PoliciesConfig } from './schema.ts'

/** Policies of one scope: a gateway, listener, route or section that a request passes. */
export type PolicyScope = {
  /** Identifies its counts across reloads and in metrics: `gateway default`, `route api`, `llm`, `mcp`. */
  name: string
  policies: PoliciesConfig
  /** Host of a listener. */
  hostname?: string | undefined
  /** Name of a listener. */
  listener?: string | undefined
}

/** Contribution of one scope to each step of a route. */
export type ScopeSteps = {
  readonly documents: Policy | undefined
  readonly cors: Policy | undefined
  readonly csrf: Policy | undefined
  readonly oidc: Policy | undefined
  readonly mcpAuthentication: AuthenticationCheck | undefined
  readonly jwtAuth: AuthenticationCheck | undefined
  readonly basicAuth: AuthenticationCheck | undefined
  readonly apiKey: AuthenticationCheck | undefined
  readonly extAuthz: Policy | undefined
  readonly authorization: Policy | undefined
  readonly requestLimits: Policy | undefined
  readonly globalRequestLimits: Policy | undefined
  /** Whether expressions before the backend read the body. */
  readonly readsBodyEarly: boolean
  readonly a2a: Policy | undefined
  readonly bodyAuthorization: Policy | undefined
  readonly bodyLimits: Policy | undefined
  readonly globalBodyLimits: Policy | undefined
  readonly buffer: Policy | undefined
  readonly transformations: Policy | undefined
  readonly extProc: Policy | undefined
  readonly responseHeaderModifier: Policy | undefined
  readonly requestRedirect: Policy | undefined
  readonly directResponse: Policy | undefined
  readonly requestHeaderModifier: Policy | undefined
  readonly urlRewrite: Policy | undefined
  readonly delay: Policy | undefined
  /** Transformations that read the parsed LLM request. */
  readonly llmTransformations: Policy | undefined
  readonly llmAuthorization: Policy | undefined
  readonly tokenLimits: Policy | undefined
  readonly globalTokenLimits: Policy | undefined
  readonly mcpAuthorization: McpAuthorization | undefined
  /** Limits of single messages. */
  readonly messageLimits: McpCheck | undefined
}

/**
 * Compiles a scope once for all of its routes and caches it until its policies or its limiter backend change.
 */
export function compileScope(
  scope: PolicyScope,
  context: CompileContext,
  traffic: { kind: TrafficKind; maxBodyBytes: number },
): ScopeSteps {
  const node = nodeOf(scope.policies, context)
  const purpose = `policies of ${scope.name} for ${traffic.kind}, ${traffic.maxBodyBytes}`
  return context.cached(node, purpose, () => compileSteps(scope, context, traffic))
}

/** The cache keys of scopes, for results that are compiled of their policies. */
export function scopeNodes(scopes: readonly PolicyScope[], context: CompileContext): object[] {
  return scopes.map(({ policies }) => nodeOf(policies, context))
}

/** Returns a cache key that lives until the policies or a backend that they refer to change. */
function nodeOf(policies: PoliciesConfig, context: CompileContext): object {
  let node: object = policies
  for (const backend of referencedBackends(policies, context)) {
    const joints = context.cached(node, 'policies by backend', () => new WeakMap<NamedBackend, object>())
    node = joints.get(backend) ?? {}
    joints.set(backend, node)
  }
  return node
}

/** Returns the named backends that policies of a scope call. */
function referencedBackends(
  { remoteRateLimit, rateLimit, extAuthz, extProc }: PoliciesConfig,
  { backends = [] }: UpstreamContext,
): NamedBackend[] {
  const references = [
    ...variantsOf(remoteRateLimit ?? rateLimit?.global).map(({ config }) => config.backend),
    ...variantsOf(extAuthz).map(({ config }) => config.backend),
    ...variantsOf(extProc).map(({ config }) => config.backend),
  ]
  return references.flatMap((reference) =>
    reference === undefined ? [] : (findBackend(reference, backends) ?? []),
  )
}

function compileSteps(
  { name: scope, policies }: PolicyScope,
  context: CompileContext,
  { kind, maxBodyBytes }: { kind: TrafficKind; maxBodyBytes: number },
): ScopeSteps {
  const { cors, csrf, basicAuth, oidc, jwtAuth, mcpAuthentication, apiKey, mcpAuthorization } = policies
  const { responseHeaderModifier, requestRedirect, directResponse } = policies
  const { requestHeaderModifier, urlRewrite, extAuthz, extProc } = policies
  const isLlm = kind === 'llm'
  const variables = celVariablesOf(kind)
  const early = earlyVariablesOf(kind)
  const ofMcp = mcpAuthentication && compileMcpAuthentication(mcpAuthentication, context)
  const authorization =
    policies.authorization && compileAuthorization(policies.authorization, context, { variables, scope })
  const ofMessages = messageLimitsOf(policies, kind)
  const limits = compileLocalLimits(policies.localRateLimit ?? policies.rateLimit?.local, context, {
    scope,
    select: (all) => requestLimitsOf(all, kind),
  })
  const globalLimits = compileGlobalLimits(policies.remoteRateLimit ?? policies.rateLimit?.global, context, {
    scope,
    hasTokens: isLlm,
    select: (all) => globalRequestLimitsOf(all, kind),
  })
  const late = {
    authorization: authorization?.afterBody,
    limits: limits.afterBody,
    globalLimits: globalLimits.afterBody,
  }
  return {
    documents: ofMcp?.discovery,
    cors: cors && compileCors(kind === 'mcp' ? withMcpHeaders(cors) : cors),
    csrf: csrf && compileCsrf(csrf),
    oidc: oidc && ofConnections(compileOidc(oidc, context, scope)),
    mcpAuthentication: ofMcp?.check,
    jwtAuth: jwtAuth && compileJwtAuth(jwtAuth, context),
    basicAuth: basicAuth && compileBasicAuth(basicAuth, context),
    apiKey: apiKey && compileApiKey(apiKey, context, scope),
    extAuthz:
      extAuthz &&
      ofConnections(
        compileConditional(extAuthz, headVariables, (variant) =>
          compileExtAuthz(variant, context, { variables: headVariables, scope }),
        ),
      ),
    authorization: authorization?.beforeBody,
    requestLimits: limits.beforeBody,
    globalRequestLimits: globalLimits.beforeBody,
    readsBodyEarly: readsBodyEarly(policies),
    a2a: kind === 'http' && policies.a2a ? compileA2a(context, scope) : undefined,
    bodyAuthorization: isLlm ? undefined : late.authorization,
    bodyLimits: isLlm ? undefined : late.limits,
    globalBodyLimits: isLlm ? undefined : late.globalLimits,
    // Streams of events of the other kinds would never reach their clients.
    buffer: kind === 'http' && policies.buffer ? compileBuffer(policies.buffer, maxBodyBytes) : undefined,
    ...compileTransformationSteps({ name: scope, policies }, context, { kind, maxBodyBytes }),
    extProc:
      extProc &&
      compileConditional(extProc, early, (one) =>
        compileExtProc(one, context, {
          scope,
          variables: { request: early, reply: celVariablesOf(kind, 'reply') },
        }),
      ),
    responseHeaderModifier: responseHeaderModifier && compileResponseHeaderModifier(responseHeaderModifier),
    requestRedirect: requestRedirect && compileRequestRedirect(requestRedirect),
    directResponse:
      directResponse && compileConditional(directResponse, early, (one) => compileDirectResponse(one, early)),
    requestHeaderModifier: requestHeaderModifier && compileRequestHeaderModifier(requestHeaderModifier),
    urlRewrite: urlRewrite && compileUrlRewrite(urlRewrite),
    delay: policies.delay && compileDelay(policies.delay, variables),
    llmAuthorization: isLlm ? late.authorization : undefined,
    tokenLimits: isLlm ? late.limits : undefined,
    globalTokenLimits: isLlm ? late.globalLimits : undefined,
    mcpAuthorization:
      mcpAuthorization && compileMcpAuthorization(mcpAuthorization, context, labelOfItemRules(scope)),
    messageLimits: ofMessages && compileMessageLimits({ ...ofMessages, scope }, context),
  }
}

/** Marks a check whose effects a connection has until its end: a session of a browser, a remote decision. */
function ofConnections(policy: Policy | undefined): Policy | undefined {
  return policy && { ...policy, isOfConnections: true }
}

/** The global limits of requests: on MCP routes those without descriptors of messages. */
function globalRequestLimitsOf(
  limits: GlobalRateLimitConfig,
  kind: TrafficKind,
): GlobalRateLimitConfig | undefined {
  if (kind !== 'llm' && limits.appliesTo !== undefined) return undefined
  return kind === 'mcp' ? withDescriptors(limits, false) : limits
}

/** Limits of MCP messages, which the backend evaluates; undefined on other routes. */
function messageLimitsOf(policies: PoliciesConfig, kind: TrafficKind) {
  if (kind !== 'mcp') return undefined
  const [local, remote] = [
    policies.localRateLimit ?? policies.rateLimit?.local ?? [],
    policies.remoteRateLimit,
  ]
  const global = remote ?? policies.rateLimit?.global
  return {
    local: isConditional(local) ? [] : trafficLimitsOf(local, kind).filter(countsMessages),
    remote:
      global === undefined || isConditional(global) || global.appliesTo !== undefined
        ? undefined
        : withDescriptors(global, true),
  }
}

/** The limits with the descriptors of messages, or with the others; undefined without any. */
function withDescriptors(
  remote: GlobalRateLimitConfig | undefined,
  ofMessages: boolean,
): GlobalRateLimitConfig | undefined {
  const descriptors = remote?.descriptors.filter((one) => describesMessages(one) === ofMessages) ?? []
  if (remote === undefined || descriptors.length === 0) return undefined
  return descriptors.length === remote.descriptors.length ? remote : { ...remote, descriptors }
}

/** Compiles transformations to one of two steps: after the LLM request is parsed if they read it. */
function compileTransformationSteps(
  { name: scope, policies: { transformations } }: PolicyScope,
  context: CompileContext,
  { kind, maxBodyBytes }: { kind: TrafficKind; maxBodyBytes: number },
): Pick<ScopeSteps, 'transformations' | 'llmTransformations'> {
  if (transformations === undefined) return { transformations: undefined, llmTransformations: undefined }
  const isLate = kind === 'llm' && isAfterLlmRequest(transformations)
  const request = isLate ? celVariablesOf(kind) : earlyVariablesOf(kind)
  const variables = { request, response: celVariablesOf(kind, 'reply') }
  const policy = compileConditional(transformations, request, (one) =>
    compileTransformations(one, context, { variables, scope, maxBodyBytes }),
  )
  return isLate
    ? { transformations: undefined, llmTransformations: policy }
    : { transformations: policy, llmTransformations: undefined }
}

/** Label of item rules. Those of the `mcp` section omit its name. */
export function labelOfItemRules(scope: string): string {
  return scope === 'mcp' ? 'mcpAuthorization' : `${scope} mcpAuthorization`
}

/**
 * Returns the limits for a kind of traffic. Token limits, and limits that apply to LLM traffic only, are
 * ignored elsewhere.
 */
function trafficLimitsOf(limits: LocalRateLimitConfig, kind: TrafficKind): LocalRateLimitConfig {
  return kind === 'llm' ? limits : limits.filter((limit) => !isLlmOnly(limit))
}

function requestLimitsOf(limits: LocalRateLimitConfig, kind: TrafficKind): LocalRateLimitConfig {
  const all = trafficLimitsOf(limits, kind)
  return kind === 'mcp' ? all.filter((limit) => !countsMessages(limit)) : all
}

/** Response headers that browser clients need to resume a session and to discover authentication. */
const mcpResponseHeaders = ['mcp-session-id', 'www-authenticate']
/** Exposed without `exposeHeaders`: a user can report the id of a failed request. */
const exposedByDefault = ['x-request-id']
/** Request headers that they need to resume a session or an interrupted stream. */
const mcpRequestHeaders = ['mcp-session-id', 'mcp-protocol-version', 'last-event-id']
/** Methods of MCP clients. DELETE ends a session and requires a preflight. */
const mcpMethods = ['GET', 'POST', 'DELETE']

function withMcpHeaders(cors: CorsConfig): CorsConfig {
  return {
    ...cors,
    allowMethods: cors.allowMethods ?? mcpMethods,
    allowHeaders: withNames(cors.allowHeaders, mcpRequestHeaders),
    exposeHeaders: withNames(cors.exposeHeaders ?? exposedByDefault, mcpResponseHeaders),
  }
}

function withNames(configured: readonly string[] = [], needed: readonly string[]): string[] {
  const lacking = needed.filter(
    (name) => !configured.some((entry) => entry === '*' || entry.toLowerCase() === name),
  )
  return [...configured, ...lacking]
}
