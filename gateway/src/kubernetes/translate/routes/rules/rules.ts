import { parseDuration } from '../../../../lib/duration.ts'
import type { BackendReference, GrpcRouteRule, HttpRouteRule } from '../../../objects/gateway-api.ts'
import type { BackendResolution } from '../../plan.ts'
import { type BackendRules, errorBackends, grpcRules, httpRules, translateBackends } from './backend-refs.ts'
import { translateFilters } from './filters.ts'
import { grpcMatches, httpMatches } from './matches.ts'
import type { CheckPolicies, RoutePolicies, RuleContext, RuleMistake, RulePlan } from './rule-plan.ts'

/** Inputs that the rules of a route share. */
export type RuleSurroundings = {
  /** Resolves a reference at a path in the route. */
  resolve(reference: BackendReference, at: string): BackendResolution
  checkPolicies: CheckPolicies
  /** Mistakes of the route, which concern all of its rules. */
  readonly mistakes: readonly RuleMistake[]
}

type Rule = HttpRouteRule | GrpcRouteRule

/** Translates a rule of an HTTPRoute. */
export function planHttpRule(rule: HttpRouteRule, index: number, surroundings: RuleSurroundings): RulePlan {
  return planRule({ kind: 'HTTPRoute', rule, index, rules: httpRules }, surroundings, (report) => ({
    matches: httpMatches(rule.matches, report),
    policies: { ...timeoutsOf(rule.timeouts), ...retryOf(rule.retry, report) },
  }))
}

/** Translates a rule of a GRPCRoute. */
export function planGrpcRule(rule: GrpcRouteRule, index: number, surroundings: RuleSurroundings): RulePlan {
  return planRule({ kind: 'GRPCRoute', rule, index, rules: grpcRules }, surroundings, (report) => ({
    matches: grpcMatches(rule.matches, report),
    policies: {},
  }))
}

type Planned = {
  readonly kind: 'HTTPRoute' | 'GRPCRoute'
  readonly rule: Rule
  readonly index: number
  readonly rules: BackendRules
}

function planRule(
  { kind, rule, index, rules }: Planned,
  { resolve, checkPolicies, mistakes: ofRoute }: RuleSurroundings,
  translateOwn: (report: RuleContext['report']) => {
    matches: RulePlan['matches']
    policies: RoutePolicies
  },
): RulePlan {
  const mistakes = [...ofRoute]
  const path = `spec.rules[${index}]`
  const context: RuleContext = {
    resolve: (reference, at) => resolve(reference, `${path}.${at}`),
    report(at, message, reason = 'UnsupportedValue') {
      mistakes.push({ reason, message: `${path}.${at}: ${message}` })
    },
    checkPolicies,
  }
  const { report } = context
  const own = translateOwn(report)
  const filters = translateFilters(kind, rule.filters, context)
  const { backends, traffic, hasAgent, names } = translateBackends(rule.backendRefs, rules, context)
  const { requestRedirect } = filters.policies
  if (rule.sessionPersistence !== undefined) report('sessionPersistence', 'is not supported: remove it')
  if (requestRedirect !== undefined && (rule.backendRefs ?? []).length > 0) {
    report('backendRefs', 'must be empty beside RequestRedirect', 'IncompatibleFilters')
  }
  checkPrefixChange(filters.policies, own.matches, report)
  const common = { index, name: rule.name, traffic, matches: own.matches, mistakes }
  const isUnused = requestRedirect === undefined && names.length === 0
  const policies = isUnused
    ? undefined
    : completed({ ...filters.policies, ...own.policies, ...(hasAgent && { a2a: {} }) }, rule, {
        ...common,
        names,
      })
  const usedNames = [...new Set([...names, ...filters.names])]
  if (policies !== undefined && mistakes.length === 0) {
    const mistake = checkPolicies(policies, traffic, usedNames)
    if (mistake !== undefined) report(fieldOf.get(mistake.policy) ?? 'filters', mistake.message)
  }
  if (mistakes.length > 0) {
    return {
      ...common,
      policies: undefined,
      backends: errorBackends(rules, invalidRuleMessage),
      traffic: 'http',
      redirectsToListenerPort: false,
      names: [],
    }
  }
  return {
    ...common,
    policies,
    backends: requestRedirect === undefined ? backends : [],
    redirectsToListenerPort: filters.redirectsToListenerPort,
    names: isUnused ? [] : usedNames,
  }
}

/** Fields of rules by policy of the Config; others are filters. */
const fieldOf: ReadonlyMap<string, string> = new Map([
  ['timeout', 'timeouts'],
  ['retry', 'retry'],
])

/** Response to requests of a rule with mistakes; the status of the route names them. */
export const invalidRuleMessage = 'the rule of this route is not valid'

/** The policies of all rules of Services without filters: one node, checked once. */
const forwardingHost: RoutePolicies = { urlRewrite: { authority: 'none' } }

/**
 * Adds the rule of the Gateway API that backends receive the host of the client. A GatewayBackend is an
 * address outside the cluster, which expects its own name.
 */
function completed(
  policies: RoutePolicies,
  { backendRefs = [] }: Rule,
  { traffic, names }: Pick<RulePlan, 'traffic' | 'names'>,
): RoutePolicies | undefined {
  const isEmpty = Object.keys(policies).length === 0
  const keepsHost =
    traffic === 'http' &&
    names.length > 0 &&
    backendRefs.some(({ kind = 'Service' }) => kind === 'Service') &&
    policies.urlRewrite === undefined
  if (keepsHost) return isEmpty ? forwardingHost : { ...policies, ...forwardingHost }
  return isEmpty ? undefined : policies
}

function checkPrefixChange(
  { requestRedirect, urlRewrite }: RoutePolicies,
  matches: RulePlan['matches'],
  report: RuleContext['report'],
): void {
  const prefix = requestRedirect?.path?.prefix ?? urlRewrite?.path?.prefix
  if (prefix === undefined) return
  const others = matches?.some(({ path }) => path !== undefined && path.pathPrefix === undefined)
  if (others === true) report('filters', 'ReplacePrefixMatch requires PathPrefix in all matches of the rule')
}

function timeoutsOf({ request, backendRequest }: NonNullable<HttpRouteRule['timeouts']> = {}): RoutePolicies {
  if ((request ?? backendRequest) === undefined) return {}
  return {
    timeout: {
      ...(request === undefined ? {} : { requestTimeout: request }),
      ...(backendRequest === undefined ? {} : { backendRequestTimeout: backendRequest }),
    },
  }
}

/** The longest wait before a retry is 10 s, of which half is random. */
const maxBackoffMs = 5_000

/**
 * Translates retries. `backoff` of the Gateway API is the minimum wait, which is half of the maximum in the
 * Config.
 */
function retryOf(retry: HttpRouteRule['retry'], report: RuleContext['report']): RoutePolicies {
  if (retry === undefined) return {}
  const { codes, attempts, backoff } = retry
  const backoffMs = backoff === undefined ? undefined : parseDuration(backoff)
  if (backoff !== undefined && (backoffMs === undefined || backoffMs > maxBackoffMs)) {
    report('retry.backoff', `must be a duration up to 5s, got "${backoff}"`)
  }
  return {
    retry: {
      ...(attempts === undefined ? {} : { attempts }),
      ...(backoffMs === undefined ? {} : { backoff: `${backoffMs * 2}ms` }),
      ...(codes === undefined ? {} : { codes: [...codes] }),
    },
  }
}
