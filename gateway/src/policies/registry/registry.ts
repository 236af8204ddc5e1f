import { type AuthenticationCheck, compileAuthentication } from '../../identity/authentication.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { McpCheck } from '../../pipeline/mcp/mcp-check.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { compileRequestBodyLimits } from '../../pipeline/request-body.ts'
import { anyHost, normaliseHostname } from '../../pipeline/routing/hostnames.ts'
import { compileBudgets } from '../budgets/budgets.ts'
import { compileOrigins } from '../cors.ts'
import { compileCsrf } from '../csrf.ts'
import type { WebhookLimits } from '../guardrails/kinds/webhook/limits.ts'
import { compileMcpGuardrails } from '../guardrails/mcp/mcp.ts'
import { allOfMcpAuthorizations, type McpAuthorization } from '../mcp-authorization.ts'
import { withoutLoginCookies } from '../oidc/oidc.ts'
import { compileOrigin } from '../origin.ts'
import { compileKeyLimits, keyTokenCharges } from '../rate-limit/keys/key-limits.ts'
import { compileRequestBody } from '../request-body.ts'
import { withBatchedRequests } from './batched-requests.ts'
import { addRepeating } from './repetitions.ts'
import { compileScope, type PolicyScope, type ScopeSteps } from './scope.ts'
import { warnAboutPolicies } from './warnings.ts'

/** Step of a route and the reason for its position. */
type Step = { step: StepName; because: string }

type StepName =
  | 'documents'
  | 'origin'
  | 'cors'
  | 'csrf'
  | 'oidc'
  | 'tokens'
  | 'basicAuth'
  | 'apiKey'
  | 'extAuthz'
  | 'authorization'
  | 'requestLimits'
  | 'keyLimits'
  | 'globalRequestLimits'
  | 'requestBody'
  | 'a2a'
  | 'bodyAuthorization'
  | 'bodyLimits'
  | 'globalBodyLimits'
  | 'transformations'
  | 'buffer'
  | 'extProc'
  | 'responseHeaderModifier'
  | 'requestRedirect'
  | 'directResponse'
  | 'requestHeaderModifier'
  | 'urlRewrite'
  | 'llmRequest'
  | 'payloads'
  | 'llmTransformations'
  | 'llmAuthorization'
  | 'modelAuthorization'
  | 'tokenLimits'
  | 'budgets'
  | 'globalTokenLimits'
  | 'guardrails'
  | 'delay'

/**
 * Execution order of policies. In each step, policies of the gateway run before those of the listener and the
 * route. Replies pass in reverse order.
 */
export const order: readonly Step[] = [
  { step: 'documents', because: 'discovery and registration are public, for every origin' },
  { step: 'origin', because: 'a page of a forbidden origin receives no information' },
  {
    step: 'cors',
    because: 'a browser can read a refusal only if the reply has CORS headers; preflights have no credential',
  },
  {
    step: 'csrf',
    because: 'a forged request uses no session and no password; its refusal is readable as any other',
  },
  {
    step: 'oidc',
    because:
      'as tokens; it responds to a browser with a login, before a check that could only refuse. Its cookies are removed',
  },
  {
    step: 'tokens',
    because: 'unauthenticated requests cause no work: no rule, no count, no byte of the body',
  },
  { step: 'basicAuth', because: 'as tokens, which need no thread' },
  {
    step: 'apiKey',
    because: 'as tokens, which are removed from the request first, so that a token is never an unknown key',
  },
  {
    step: 'extAuthz',
    because:
      'no call for unauthenticated requests; rules may read its values, and it decides on the claims of a token',
  },
  { step: 'authorization', because: 'rules on the head refuse before counting and reading the body' },
  { step: 'requestLimits', because: 'counting precedes the body, which is expensive to read' },
  {
    step: 'keyLimits',
    because: 'as request limits; token limits of a key, too, because they need no body',
  },
  {
    step: 'globalRequestLimits',
    because: 'a network call is made only for requests that local limits admit',
  },
  {
    step: 'requestBody',
    because:
      'the body is read only for expressions over it, after all other checks; an LLM request is parsed later',
  },
  { step: 'a2a', because: 'rules on the body may read the method of a call to an agent' },
  { step: 'bodyAuthorization', because: 'a denied request must not count' },
  {
    step: 'bodyLimits',
    because: 'as limits before the body: they refuse before a redirect or a backend responds',
  },
  { step: 'globalBodyLimits', because: 'as requests: local limits come first, because they need no call' },
  { step: 'buffer', because: 'bodies of refused requests are not read; later steps receive a complete one' },
  {
    step: 'extProc',
    because:
      'the processor receives only requests that rules and limits admit; later steps see its changes, and the body is parsed later',
  },
  {
    step: 'transformations',
    because:
      "after the checks of the client's request; an LLM request is parsed from the new body, so that its rules, limits and guards apply to the forwarded one. Replies pass it after the header edits of the route",
  },
  {
    step: 'responseHeaderModifier',
    because: 'changes replies of the route, including redirects, but not those of refusals, limits and CORS',
  },
  { step: 'requestRedirect', because: 'a reply like that of a backend, under the same checks' },
  { step: 'directResponse', because: 'as a redirect, which takes precedence' },
  { step: 'requestHeaderModifier', because: 'applies only to forwarded requests' },
  { step: 'urlRewrite', because: 'as headers; earlier rules see the original request' },
  { step: 'llmRequest', because: 'reads the body once; later steps may depend on it' },
  {
    step: 'llmTransformations',
    because: 'header values of the parsed request; it changes no body, which is checked next',
  },
  {
    step: 'payloads',
    because: 'stores the content of refused requests, too; replies pass it after the guards have masked them',
  },
  { step: 'llmAuthorization', because: 'a denied request must not count against a budget' },
  { step: 'modelAuthorization', because: 'as rules of the endpoint, which apply to every model' },
  {
    step: 'tokenLimits',
    because: 'the last local check: a request over budget reaches no provider and no webhook',
  },
  {
    step: 'budgets',
    because: 'as token limits, which need no reservation; they precede the calls of a service and of guards',
  },
  { step: 'globalTokenLimits', because: 'as requests: local limits come first, because they need no call' },
  {
    step: 'guardrails',
    because: 'their calls cost time and money; after their check of a reply nothing modifies it',
  },
  { step: 'delay', because: 'latency of the backend: only requests that are forwarded wait' },
]

/** Kind of a route with the options of its policies. */
export type RouteKind =
  /**
   * `maxBodyBytes` limits bodies read for expressions. `fallback`: requests without a route, answered 404.
   */
  | { kind: 'http'; maxBodyBytes: number; place?: 'fallback' | 'backend' }
  /** The admin API. */
  | { kind: 'ui'; maxBodyBytes: number }
  /** `llmRequest` parses the body, `guardrails` check requests to the model and its responses. */
  | {
      kind: 'llm'
      maxBodyBytes: number
      llmRequest: Policy
      /** Stores content in the ledger. */
      payloads?: Policy | undefined
      modelAuthorization?: Policy | undefined
      guardrails?: Policy | undefined
      reach: Reach
    }
  | { kind: 'mcp'; maxBodyBytes: number; reach: Reach; webhooks: WebhookLimits }

/** Reachability of a route. */
export type Reach = {
  /** The listener accepts loopback connections only. */
  isLoopback: boolean
  /** Whether `allowedHosts` has the host. */
  isAllowedHost(host: string): boolean
  /** Hostnames of the route. */
  hostnames?: readonly string[] | undefined
}

export type RoutePolicies = {
  policies: Policy[]
  /** Rules on single tools, prompts and resources, for the MCP backend. */
  rules: McpAuthorization | undefined
  /** Checks of single messages, for the MCP backend. */
  checks: readonly McpCheck[]
}

/**
 * Compiles the policies of a route in order. `scopes` are listed from general to specific. Authentication,
 * rules and limits of all scopes apply; of several `cors` only the most specific.
 */
export function compilePolicies(
  scopes: readonly PolicyScope[],
  context: CompileContext,
  route: RouteKind,
): RoutePolicies {
  if (route.kind !== 'http' || route.place === undefined) warnAboutPolicies(scopes, context, route.kind)
  const compiled = scopes.map((scope) => compileScope(scope, context, route))
  const policies: Policy[] = []
  const parts = { scopes, compiled, route, context }
  for (const { step } of order) addRepeating(policies, step, () => addStep(policies, step, parts))
  return {
    policies,
    rules: allOfMcpAuthorizations(present(compiled, 'mcpAuthorization')),
    checks: [...present(compiled, 'messageLimits'), ...mcpGuards(scopes, context, route)],
  }
}

/** Guards of MCP messages, of all scopes. They run after all limits, because their calls cost time. */
function mcpGuards(scopes: readonly PolicyScope[], context: CompileContext, route: RouteKind): McpCheck[] {
  if (route.kind !== 'mcp') return []
  const { webhooks: limits } = route
  return scopes.flatMap(({ name: scope, policies: { mcpGuardrails } }) =>
    mcpGuardrails === undefined ? [] : compileMcpGuardrails(mcpGuardrails, { scope, limits }, context),
  )
}

type Parts = {
  scopes: readonly PolicyScope[]
  compiled: readonly ScopeSteps[]
  route: RouteKind
  context: CompileContext
}

/** Adds the policies of a step, for most steps those of each scope. */
function addStep(policies: Policy[], step: StepName, { scopes, compiled, route, context }: Parts) {
  switch (step) {
    case 'origin':
      return addOrigin(policies, scopes, route)
    case 'cors': {
      const mostSpecific = present(compiled, 'cors').at(-1)
      if (mostSpecific !== undefined) policies.push(mostSpecific)
      return
    }
    case 'oidc':
      return addLogins(policies, present(compiled, 'oidc').reverse())
    case 'tokens':
      return addChecks(policies, 'token', [
        ...present(compiled, 'mcpAuthentication').reverse(),
        ...present(compiled, 'jwtAuth').reverse(),
      ])
    case 'csrf':
      return addCsrf(policies, { scopes, compiled, route, context })
    case 'basicAuth':
      return addChecks(policies, 'basic auth', present(compiled, 'basicAuth').reverse())
    case 'apiKey':
      return addChecks(policies, 'api key', present(compiled, 'apiKey').reverse())
    case 'keyLimits':
      if (hasKeys(scopes)) policies.push(compileKeyLimits(context, { hasTokens: route.kind === 'llm' }))
      return
    case 'requestBody':
      if (route.kind !== 'mcp' && compiled.some((scope) => readsBody(scope, route.kind)))
        policies.push(compileRequestBody(compileRequestBodyLimits(route.maxBodyBytes, context)))
      return
    case 'llmRequest':
      if (route.kind !== 'llm') return
      policies.push(route.llmRequest)
      if (hasKeys(scopes)) policies.push(keyTokenCharges)
      return
    case 'budgets':
      return addBudgets(policies, { scopes, compiled, route, context })
    case 'payloads':
    case 'modelAuthorization':
    case 'guardrails': {
      const policy = route.kind === 'llm' ? route[step] : undefined
      if (policy) policies.push(step === 'payloads' ? policy : withBatchedRequests(policy))
      return
    }
    case 'llmAuthorization':
      policies.push(...present(compiled, step).map(withBatchedRequests))
      return
    default:
      for (const scope of compiled) if (scope[step] !== undefined) policies.push(scope[step])
  }
}

/** Adds one step for the budgets of all scopes and of virtual keys. */
function addBudgets(list: Policy[], { scopes, route, context }: Parts): void {
  if (route.kind !== 'llm') return
  const scoped = scopes.flatMap(({ name: scope, policies: { budgets } }) =>
    budgets === undefined ? [] : [{ scope, budgets }],
  )
  if (hasKeys(scopes) || scoped.length > 0) list.push(compileBudgets(scoped, context))
}

function hasKeys(scopes: readonly PolicyScope[]): boolean {
  return scopes.some(({ policies }) => policies.apiKey !== undefined)
}

/** Whether a scope has a step that needs the body before the backend, or before the LLM request is parsed. */
function readsBody(
  { a2a, readsBodyEarly, bodyAuthorization, bodyLimits, globalBodyLimits }: ScopeSteps,
  kind: RouteKind['kind'],
): boolean {
  if (readsBodyEarly || kind === 'llm') return readsBodyEarly
  return (a2a ?? bodyAuthorization ?? bodyLimits ?? globalBodyLimits) !== undefined
}

/** Adds checks, the most specific first: its challenge and its identity take precedence. */
function addChecks(policies: Policy[], name: string, checks: readonly AuthenticationCheck[]) {
  if (checks.length > 0) policies.push(compileAuthentication(name, checks))
}

/**
 * Adds the configured checks of the origin. Without any, a check protects browsers with a session, and at the
 * admin API browsers with any credential that they send by themselves.
 */
function addCsrf(policies: Policy[], { scopes, compiled, route }: Parts): void {
  const configured = present(compiled, 'csrf')
  policies.push(...configured)
  if (configured.length > 0) return
  const isNeeded = scopes.some(route.kind === 'ui' ? sendsCredentials : hasLogin)
  if (isNeeded) policies.push(compileCsrf({}, compileOrigins(trustedOrigins(scopes))))
}

function hasLogin({ policies }: PolicyScope): boolean {
  return policies.oidc !== undefined
}

/** Whether browsers add a credential to requests of every page. */
function sendsCredentials({ policies: { oidc, basicAuth, jwtAuth, apiKey } }: PolicyScope): boolean {
  const [inToken, inKey] = [jwtAuth?.location?.cookie, apiKey?.location?.cookie]
  return (oidc ?? basicAuth ?? inToken ?? inKey) !== undefined
}

/** Origins that may read replies with credentials may also send requests. */
function trustedOrigins(scopes: readonly PolicyScope[]): string[] {
  const cors = scopes.findLast(({ policies }) => policies.cors !== undefined)?.policies.cors
  if (cors?.allowCredentials !== true) return []
  return (cors.allowOrigins ?? []).filter((origin) => origin !== '*')
}

/** Adds logins, the most specific first, and the removal of their cookies after the last one. */
function addLogins(policies: Policy[], logins: readonly Policy[]) {
  if (logins.length > 0) policies.push(...logins, withoutLoginCookies)
}

/** Returns the defined values of a step over all scopes. */
function present<Name extends keyof ScopeSteps>(
  compiled: readonly ScopeSteps[],
  name: Name,
): NonNullable<ScopeSteps[Name]>[] {
  const found: NonNullable<ScopeSteps[Name]>[] = []
  for (const scope of compiled) {
    const part = scope[name]
    if (part !== undefined && part !== null) found.push(part)
  }
  return found
}

/**
 * Adds the origin check, because MCP servers and models act for their clients. LLM routes need it only
 * without strict authentication.
 */
function addOrigin(policies: Policy[], scopes: readonly PolicyScope[], route: RouteKind): void {
  if (route.kind === 'http' || route.kind === 'ui') return
  const isOpen = !scopes.some(isStrict)
  if (route.kind === 'mcp' || isOpen) policies.push(originPolicy(scopes, route.reach, isOpen))
}

/** Whether a scope requires a credential that browsers do not add by themselves to requests of every page. */
function isStrict({ policies: { jwtAuth, apiKey, mcpAuthentication } }: PolicyScope): boolean {
  return [jwtAuth, apiKey, mcpAuthentication].some(
    (check) => check !== undefined && (check.mode ?? 'strict') === 'strict',
  )
}

function originPolicy(scopes: readonly PolicyScope[], reach: Reach, isOpen: boolean): Policy {
  const cors = scopes.findLast(({ policies }) => policies.cors !== undefined)?.policies.cors
  const hostnames = [...(reach.hostnames ?? []), ...scopes.flatMap(({ hostname }) => hostname ?? [])]
  // Requests to other hosts do not reach a route with hostnames.
  const isNamed = hostnames.some((hostname) => normaliseHostname(hostname) !== anyHost)
  return compileOrigin({
    isAllowed: compileOrigins(cors?.allowOrigins ?? []),
    allowsAny: cors?.allowOrigins?.includes('*') === true,
    isLoopback: reach.isLoopback,
    isOpen,
    isConfiguredHost: isNamed ? undefined : reach.isAllowedHost,
    hosts: scopes.flatMap(({ policies }) => {
      const resource = policies.mcpAuthentication?.resourceMetadata?.resource
      return resource === undefined ? [] : [new URL(resource).host]
    }),
  })
}
