import { type AuthenticationCheck, compileAuthentication } from '../../identity/authentication.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { compileRequestBodyLimits } from '../../pipeline/request-body.ts'
import { anyHost, normaliseHostname } from '../../pipeline/routing/hostnames.ts'
import { compileOrigins } from '../cors.ts'
import { allOfMcpAuthorizations, type McpAuthorization } from '../mcp-authorization.ts'
import { compileOrigin } from '../origin.ts'
import { compileRequestBody } from '../request-body.ts'
import { compileScope, type PolicyScope, type ScopeSteps } from './scope.ts'
import { warnAboutRules } from './warnings.ts'

/** A step of a route, and why it is where it is. */
type Step = { step: StepName; because: string }

type StepName =
  | 'documents'
  | 'origin'
  | 'cors'
  | 'tokens'
  | 'apiKey'
  | 'authorization'
  | 'requestLimits'
  | 'globalRequestLimits'
  | 'requestBody'
  | 'bodyAuthorization'
  | 'bodyLimits'
  | 'globalBodyLimits'
  | 'responseHeaderModifier'
  | 'requestRedirect'
  | 'directResponse'
  | 'requestHeaderModifier'
  | 'urlRewrite'
  | 'llmRequest'
  | 'llmAuthorization'
  | 'tokenLimits'
  | 'globalTokenLimits'
  | 'guardrails'

/**
 * The order in which every request meets its policies, those of the gateway before those of the listener and the route
 * in each step. Replies meet them in reverse.
 */
export const order: readonly Step[] = [
  { step: 'documents', because: 'discovery and registration are for everyone, from every origin' },
  { step: 'origin', because: 'a page that may not speak to the gateway learns nothing from it' },
  {
    step: 'cors',
    because:
      'a browser can read a refusal only if the reply carries CORS headers; preflights hold no credential',
  },
  { step: 'tokens', because: 'nothing is done for strangers: no rule, no count, no byte of the body' },
  { step: 'apiKey', because: 'as tokens, which have left the request by now: a token is no unknown key' },
  {
    step: 'authorization',
    because: 'rules that need only the head refuse before anything is counted or read',
  },
  { step: 'requestLimits', because: 'a body is expensive to read, so requests are counted before it is' },
  {
    step: 'globalRequestLimits',
    because: 'a call over the network is made for what is not refused anyway',
  },
  {
    step: 'requestBody',
    because:
      'on plain HTTP routes the body is read only for expressions that name it, of requests that all others permit',
  },
  { step: 'bodyAuthorization', because: 'a request that is not permitted must not count' },
  {
    step: 'bodyLimits',
    because: 'as limits before the body: they refuse before a redirect or a backend answers',
  },
  { step: 'globalBodyLimits', because: 'as requests: the limits that cost no call come first' },
  {
    step: 'responseHeaderModifier',
    because:
      'changes what the route answers, redirects included; what refusals, limits and CORS say is not for a route to change',
  },
  { step: 'requestRedirect', because: 'an answer like that of a backend, so the same people get it' },
  { step: 'directResponse', because: 'as a redirect, which comes first' },
  { step: 'requestHeaderModifier', because: 'only what is forwarded is worth changing' },
  { step: 'urlRewrite', because: 'as headers; rules before it have seen what the client asked for' },
  { step: 'llmRequest', because: 'reads the body, once; what follows may depend on it' },
  { step: 'llmAuthorization', because: 'what may not be asked must not count against a budget' },
  {
    step: 'tokenLimits',
    because: 'the last check that costs nothing: a request over budget reaches no provider, and no webhook',
  },
  { step: 'globalTokenLimits', because: 'as requests: the limits that cost no call come first' },
  {
    step: 'guardrails',
    because: 'what they ask costs time and money; on the way back nothing changes what they have checked',
  },
]

/** What a route leads to, and what its policies must know of that. */
export type RouteKind =
  /**
   * `maxBodyBytes` bounds bodies that expressions name. `isFallback`: for requests of no route, which get 404 whatever
   * rules decide.
   */
  | { kind: 'http'; maxBodyBytes: number; isFallback?: boolean }
  /** `llmRequest` reads and understands the body, `guardrails` check what goes to the model and comes from it. */
  | { kind: 'llm'; llmRequest: Policy; guardrails?: Policy | undefined; reach: Reach }
  | { kind: 'mcp'; reach: Reach }

/** Clients that a route is reachable for. */
export type Reach = {
  /** The address is open to this machine only. */
  isLoopback: boolean
  /** Hosts of `allowedHosts`. */
  isAllowedHost(host: string): boolean
  /** Hostnames of the route. */
  hostnames?: readonly string[] | undefined
}

export type RoutePolicies = {
  policies: Policy[]
  /** Rules about single tools, prompts and resources, for the MCP backend to ask. */
  rules: McpAuthorization | undefined
}

/**
 * The policies of a route, in order. `scopes` are those the request comes through, the most general first: the
 * authentication, rules and limits of all of them apply; of several `cors` the most specific one does.
 */
export function compilePolicies(
  scopes: readonly PolicyScope[],
  context: CompileContext,
  route: RouteKind,
): RoutePolicies {
  if (route.kind !== 'http' || route.isFallback !== true) warnAboutRules(scopes, context, route.kind)
  const compiled = scopes.map((scope) => compileScope(scope, context, route.kind))
  const policies: Policy[] = []
  for (const { step } of order) addStep(policies, step, { scopes, compiled, route, context })
  return { policies, rules: allOfMcpAuthorizations(present(compiled, 'mcpAuthorization')) }
}

type Parts = {
  scopes: readonly PolicyScope[]
  compiled: readonly ScopeSteps[]
  route: RouteKind
  context: CompileContext
}

/** Adds what a step consists of, which for most is what each scope has of it. */
function addStep(policies: Policy[], step: StepName, { scopes, compiled, route, context }: Parts) {
  switch (step) {
    case 'origin':
      addOrigin(policies, scopes, route)
      return
    case 'cors': {
      const mostSpecific = present(compiled, 'cors').at(-1)
      if (mostSpecific !== undefined) policies.push(mostSpecific)
      return
    }
    case 'tokens':
      return addChecks(policies, 'token', [
        ...present(compiled, 'mcpAuthentication').reverse(),
        ...present(compiled, 'jwtAuth').reverse(),
      ])
    case 'apiKey':
      return addChecks(policies, 'api key', present(compiled, 'apiKey').reverse())
    case 'requestBody':
      if (route.kind === 'http' && compiled.some(readsBody))
        policies.push(compileRequestBody(compileRequestBodyLimits(route.maxBodyBytes, context)))
      return
    case 'llmRequest':
      if (route.kind === 'llm') policies.push(route.llmRequest)
      return
    case 'guardrails':
      if (route.kind === 'llm' && route.guardrails !== undefined) policies.push(route.guardrails)
      return
    default:
      for (const scope of compiled) if (scope[step] !== undefined) policies.push(scope[step])
  }
}

/** Whether a scope has a step that follows the body of a plain HTTP request. */
function readsBody({ bodyAuthorization, bodyLimits, globalBodyLimits }: ScopeSteps): boolean {
  return (bodyAuthorization ?? bodyLimits ?? globalBodyLimits) !== undefined
}

/** The most specific check comes first: it says best how to get in, and knows best who it is. */
function addChecks(policies: Policy[], name: string, checks: readonly AuthenticationCheck[]) {
  if (checks.length > 0) policies.push(compileAuthentication(name, checks))
}

/** What scopes have under a name, those that have it. */
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

/** MCP servers and models act for their clients. Requests of pages that bring no credential of a model's route come to nothing. */
function addOrigin(policies: Policy[], scopes: readonly PolicyScope[], route: RouteKind): void {
  if (route.kind === 'http') return
  const isOpen = !scopes.some(isStrict)
  if (route.kind === 'mcp' || isOpen) policies.push(originPolicy(scopes, route.reach, isOpen))
}

/** Whether every request of a scope needs a credential. */
function isStrict({ policies: { jwtAuth, apiKey, mcpAuthentication } }: PolicyScope): boolean {
  return [jwtAuth, apiKey, mcpAuthentication].some(
    (check) => check !== undefined && (check.mode ?? 'strict') === 'strict',
  )
}

function originPolicy(scopes: readonly PolicyScope[], reach: Reach, isOpen: boolean): Policy {
  const cors = scopes.findLast(({ policies }) => policies.cors !== undefined)?.policies.cors
  const hostnames = [...(reach.hostnames ?? []), ...scopes.flatMap(({ hostname }) => hostname ?? [])]
  // Requests for other hosts do not reach the route.
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
