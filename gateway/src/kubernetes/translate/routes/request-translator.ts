import { attachedHostnames } from '../../../pipeline/routing/hostnames.ts'
import { maxRegexMatches } from '../../../pipeline/routing/route-table.ts'
import type { GRPCRoute, HTTPRoute } from '../../objects/gateway-api.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { GatewayPlan, ListenerPlan } from '../plan.ts'
import { type Attachment, attach } from './attachment/attachment.ts'
import { createHostnameClaims, type HostnameClaims } from './attachment/hostname-claims.ts'
import { listenersByGateway } from './attachment/listeners.ts'
import { validHostnames } from './connection-routes.ts'
import type { Collection } from './gateway-collector.ts'
import { createPlacement, type PlaceRule } from './placement.ts'
import { createRegexCounts, type RegexCounts } from './regex-counts.ts'
import { createResolutions, type Resolutions } from './resolution.ts'
import { createOrder } from './route-order.ts'
import { isAccepted, type RuleFindings, routeStatus } from './route-status.ts'
import type { RoutesInput } from './routes-translation.ts'
import { createPolicyCheck } from './rules/policy-check.ts'
import type { RuleMistake, RulePlan } from './rules/rule-plan.ts'
import { planGrpcRule, planHttpRule, type RuleSurroundings } from './rules/rules.ts'

type RequestRoute = HTTPRoute | GRPCRoute

/** A route without its listeners and their policies. */
type RoutePlan = {
  readonly resolutions: Resolutions
  /** Valid hostnames; undefined for all. */
  readonly hostnames: readonly string[] | undefined
  readonly rules: readonly RulePlan[]
}

/** State of one translation. */
type Pass = {
  readonly input: RoutesInput
  readonly collection: Collection
  readonly claims: Claims | undefined
  readonly regexes: RegexCounts
  readonly place: PlaceRule
}

/** Creates the translator of HTTPRoutes and GRPCRoutes. */
export function createRequestTranslator(): (
  input: RoutesInput,
  plans: ReadonlyMap<ObjectKey, GatewayPlan>,
  collection: Collection,
) => void {
  const sort = createOrder<RequestRoute>()
  const checkPolicies = createPolicyCheck()
  const place = createPlacement(checkPolicies)
  const cache = new WeakMap<RequestRoute, RoutePlan>()

  function planOf(route: RequestRoute, { references }: RoutesInput): RoutePlan {
    const known = cache.get(route)
    if (known?.resolutions.areCurrent(references)) return known
    const resolutions = createResolutions(route, references)
    const mistakes: RuleMistake[] = []
    const hostnames = validHostnames(route.spec.hostnames, mistakes)
    const surroundings = { resolve: resolutions.resolve, checkPolicies, mistakes }
    const planned = { resolutions, hostnames, rules: planRules(route, surroundings) }
    cache.set(route, planned)
    return planned
  }

  return (input, plans, collection) => {
    const { objects } = input
    const pass: Pass = {
      input,
      collection,
      claims: objects.HTTPRoute.size > 0 && objects.GRPCRoute.size > 0 ? createClaims() : undefined,
      regexes: createRegexCounts(maxRegexMatches),
      place,
    }
    for (const route of sort([objects.HTTPRoute, objects.GRPCRoute])) {
      const attachments = attach(route, plans)
      if (attachments.length > 0) translateRoute(route, planOf(route, input), attachments, pass)
    }
  }
}

function planRules(route: RequestRoute, surroundings: RuleSurroundings): readonly RulePlan[] {
  if (route.kind === 'GRPCRoute')
    return (route.spec.rules ?? []).map((rule, index) => planGrpcRule(rule, index, surroundings))
  // The default of the API: one rule for all requests.
  return (route.spec.rules ?? [{}]).map((rule, index) => planHttpRule(rule, index, surroundings))
}

function translateRoute(
  route: RequestRoute,
  plan: RoutePlan,
  found: readonly Attachment[],
  pass: Pass,
): void {
  const key = keyOf(route)
  const attachments = pass.claims === undefined ? found : pass.claims.claim(route, key, found)
  const findings = new Map<ObjectKey, RuleFindings>()
  for (const [gateway, listeners] of listenersByGateway(attachments)) {
    findings.set(gateway, placeRoute({ route, key, gateway, listeners }, plan, pass))
  }
  const parents = attachments.map((attachment) => ({
    attachment,
    findings: findings.get(attachment.gateway) ?? noFindings,
  }))
  const accepted = parents.filter((parent) => isAccepted(parent.attachment, parent.findings))
  pass.collection.addAttached(new Set(accepted.flatMap(({ attachment }) => attachment.listeners)))
  pass.collection.addStatus(routeStatus(route, key, parents, plan.resolutions.unresolved))
}

const noFindings: RuleFindings = { rules: 0, invalid: [], mistakes: [] }

type PlacedRoute = {
  readonly route: RequestRoute
  readonly key: ObjectKey
  readonly gateway: ObjectKey
  readonly listeners: readonly ListenerPlan[]
}

/** Adds the rules of a route to the Config of a Gateway; returns the mistakes of its rules. */
function placeRoute(
  { route, key, gateway, listeners }: PlacedRoute,
  { rules, hostnames }: RoutePlan,
  { input, collection, regexes, place }: Pass,
): RuleFindings {
  const serving = listeners.filter(({ reference }) => reference !== undefined)
  const isReachable = serving.length > 0 && (hostnames === undefined || hostnames.length > 0)
  const at = { gateway, listeners: serving, route: { kind: route.kind, key }, hostnames }
  const mistakes: RuleMistake[] = []
  const invalid: number[] = []
  for (const rule of rules) {
    const placed = isReachable ? place(rule, at, input.policies) : unplaced
    const excess = regexes.add(gateway, hostnames, placed.configs)
    const found = [...rule.mistakes, ...placed.mistakes]
    if (excess !== undefined) {
      const message = `spec.rules[${rule.index}].matches: ${excess}`
      found.push({ reason: 'UnsupportedValue', message })
    } else collection.addRoutes(gateway, placed.configs, placed.names)
    mistakes.push(...found)
    if (found.length > 0) invalid.push(rule.index)
  }
  return { rules: rules.length, invalid, mistakes }
}

const unplaced = { configs: [], names: [], mistakes: [] }

/** Hostnames of routes by listener and kind. */
type Claims = {
  /** Claims the hostnames of a route on its listeners; refuses those where another kind has one of them. */
  claim(route: RequestRoute, key: ObjectKey, attachments: readonly Attachment[]): readonly Attachment[]
}

/**
 * A listener accepts one of an HTTPRoute and a GRPCRoute with a common hostname: the first by precedence
 * (Gateway API, `GRPCRouteSpec.hostnames`). Routes must be passed in that order.
 */
function createClaims(): Claims {
  const byListener = new Map<ListenerPlan, Record<RequestRoute['kind'], HostnameClaims>>()
  const claimsOf = (listener: ListenerPlan) => {
    const known = byListener.get(listener)
    if (known !== undefined) return known
    const created = { HTTPRoute: createHostnameClaims(), GRPCRoute: createHostnameClaims() }
    byListener.set(listener, created)
    return created
  }
  return {
    claim({ kind, spec: { hostnames = [] } }, key, attachments) {
      const other = kind === 'HTTPRoute' ? 'GRPCRoute' : 'HTTPRoute'
      return attachments.map((attachment): Attachment => {
        if (attachment.refusal !== undefined) return attachment
        let conflict: string | undefined
        const listeners = attachment.listeners.filter((listener) => {
          const common = attachedHostnames(listener.hostname, hostnames) ?? []
          const claims = claimsOf(listener)
          const owner = claims[other].find(common)
          if (owner === undefined) claims[kind].add(common, key)
          else
            conflict ??= `${other} ${owner} has a common hostname on listener ${listener.name}, and precedes`
          return owner === undefined
        })
        if (conflict === undefined || listeners.length > 0) return { ...attachment, listeners }
        return { ...attachment, listeners, refusal: { reason: 'HostnameConflict', message: conflict } }
      })
    },
  }
}
