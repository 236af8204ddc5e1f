import type { AuthenticationCheck } from '../../identity/authentication.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { findBackend, type NamedBackend } from '../../upstream/config.ts'
import type { UpstreamContext } from '../../upstream/destination.ts'
import { compileApiKey } from '../api-key/api-key.ts'
import { compileAuthorization } from '../authorization.ts'
import { compileBasicAuth } from '../basic-auth/basic-auth.ts'
import { type CorsConfig, compileCors } from '../cors.ts'
import { compileCsrf } from '../csrf.ts'
import { compileDirectResponse } from '../direct-response.ts'
import { compileRequestHeaderModifier, compileResponseHeaderModifier } from '../header-modifier.ts'
import { compileJwtAuth } from '../jwt-auth.ts'
import { compileMcpAuthentication } from '../mcp-authentication/mcp-authentication.ts'
import { compileMcpAuthorization, type McpAuthorization } from '../mcp-authorization.ts'
import { compileOidc } from '../oidc/oidc.ts'
import { compileGlobalRateLimit } from '../rate-limit/global/global.ts'
import { compileLocalRateLimit } from '../rate-limit/local.ts'
import { isLlmOnly, type LocalRateLimitConfig } from '../rate-limit/local-config.ts'
import { compileRequestRedirect } from '../url/redirect.ts'
import { compileUrlRewrite } from '../url/rewrite.ts'
import { celVariablesOf, type TrafficKind } from './cel-variables.ts'
import type { PoliciesConfig } from './schema.ts'

/** Policies of one scope: a gateway, listener, route or section that a request passes. */
export type PolicyScope = {
  /** Identifies its counts across reloads and in metrics: `gateway default`, `route api`, `llm`, `mcp`. */
  name: string
  policies: PoliciesConfig
  /** Host of a listener. */
  hostname?: string | undefined
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
  readonly authorization: Policy | undefined
  readonly requestLimits: Policy | undefined
  readonly globalRequestLimits: Policy | undefined
  readonly bodyAuthorization: Policy | undefined
  readonly bodyLimits: Policy | undefined
  readonly globalBodyLimits: Policy | undefined
  readonly responseHeaderModifier: Policy | undefined
  readonly requestRedirect: Policy | undefined
  readonly directResponse: Policy | undefined
  readonly requestHeaderModifier: Policy | undefined
  readonly urlRewrite: Policy | undefined
  readonly llmAuthorization: Policy | undefined
  readonly tokenLimits: Policy | undefined
  readonly globalTokenLimits: Policy | undefined
  readonly mcpAuthorization: McpAuthorization | undefined
}

/**
 * Compiles a scope once for all of its routes and caches it until its policies or its limiter backend change.
 */
export function compileScope(scope: PolicyScope, context: CompileContext, kind: TrafficKind): ScopeSteps {
  const node = nodeOf(scope.policies, context)
  return context.cached(node, `policies of ${scope.name} for ${kind}`, () =>
    compileSteps(scope, context, kind),
  )
}

/** The cache keys of scopes, for results that are compiled of their policies. */
export function scopeNodes(scopes: readonly PolicyScope[], context: CompileContext): object[] {
  return scopes.map(({ policies }) => nodeOf(policies, context))
}

/** Returns a cache key that lives until the policies or the limiter backend change. */
function nodeOf(policies: PoliciesConfig, context: CompileContext): object {
  const limiter = limiterBackend(policies, context)
  if (limiter === undefined) return policies
  const joints = context.cached(policies, 'policies by backend', () => new WeakMap<NamedBackend, object>())
  const joint = joints.get(limiter) ?? {}
  joints.set(limiter, joint)
  return joint
}

/** Returns the named backend that counts the limits of a scope, if there is one. */
function limiterBackend(
  { remoteRateLimit, rateLimit }: PoliciesConfig,
  { backends = [] }: UpstreamContext,
): NamedBackend | undefined {
  const reference = (remoteRateLimit ?? rateLimit?.global)?.backend
  return reference === undefined ? undefined : findBackend(reference, backends)
}

function compileSteps(
  { name: scope, policies }: PolicyScope,
  context: CompileContext,
  kind: TrafficKind,
): ScopeSteps {
  const { cors, csrf, basicAuth, oidc, jwtAuth, mcpAuthentication, apiKey, mcpAuthorization } = policies
  const { responseHeaderModifier, requestRedirect, directResponse } = policies
  const { requestHeaderModifier, urlRewrite } = policies
  const isLlm = kind === 'llm'
  const ofMcp = mcpAuthentication && compileMcpAuthentication(mcpAuthentication, context)
  const authorization =
    policies.authorization &&
    compileAuthorization(policies.authorization, context, { variables: celVariablesOf(kind), scope })
  const limits = compileLocalRateLimit(limitsOf(policies, kind), context, { scope })
  const configured = policies.remoteRateLimit ?? policies.rateLimit?.global
  const remote = isLlm || configured?.appliesTo === undefined ? configured : undefined
  const globalLimits = remote && compileGlobalRateLimit(remote, context, { scope, hasTokens: isLlm })
  const late = {
    authorization: authorization?.afterBody,
    limits: limits.afterBody,
    globalLimits: globalLimits?.afterBody,
  }
  return {
    documents: ofMcp?.discovery,
    cors: cors && compileCors(kind === 'mcp' ? withMcpHeaders(cors) : cors),
    csrf: csrf && compileCsrf(csrf),
    oidc: oidc && compileOidc(oidc, context, scope),
    mcpAuthentication: ofMcp?.check,
    jwtAuth: jwtAuth && compileJwtAuth(jwtAuth, context),
    basicAuth: basicAuth && compileBasicAuth(basicAuth, context),
    apiKey: apiKey && compileApiKey(apiKey, context, scope),
    authorization: authorization?.beforeBody,
    requestLimits: limits.beforeBody,
    globalRequestLimits: globalLimits?.beforeBody,
    bodyAuthorization: isLlm ? undefined : late.authorization,
    bodyLimits: isLlm ? undefined : late.limits,
    globalBodyLimits: isLlm ? undefined : late.globalLimits,
    responseHeaderModifier: responseHeaderModifier && compileResponseHeaderModifier(responseHeaderModifier),
    requestRedirect: requestRedirect && compileRequestRedirect(requestRedirect),
    directResponse: directResponse && compileDirectResponse(directResponse),
    requestHeaderModifier: requestHeaderModifier && compileRequestHeaderModifier(requestHeaderModifier),
    urlRewrite: urlRewrite && compileUrlRewrite(urlRewrite),
    llmAuthorization: isLlm ? late.authorization : undefined,
    tokenLimits: isLlm ? late.limits : undefined,
    globalTokenLimits: isLlm ? late.globalLimits : undefined,
    mcpAuthorization:
      mcpAuthorization && compileMcpAuthorization(mcpAuthorization, context, labelOfItemRules(scope)),
  }
}

/** Label of item rules. Those of the `mcp` section omit its name. */
export function labelOfItemRules(scope: string): string {
  return scope === 'mcp' ? 'mcpAuthorization' : `${scope} mcpAuthorization`
}

/**
 * Returns the limits for a kind of traffic. Token limits, and limits that apply to LLM traffic only, are
 * ignored elsewhere.
 */
function limitsOf({ localRateLimit, rateLimit }: PoliciesConfig, kind: TrafficKind): LocalRateLimitConfig {
  const limits = localRateLimit ?? rateLimit?.local ?? []
  return kind === 'llm' ? limits : limits.filter((limit) => !isLlmOnly(limit))
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
