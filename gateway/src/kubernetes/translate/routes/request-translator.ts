import { shareStructure } from '../../../config/live/structural-share.ts'
import { maxRegexMatches } from '../../../pipeline/routing/route-table.ts'
import type { GRPCRoute, HTTPRoute } from '../../objects/gateway-api.ts'
import { compareByAge, keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { GatewayPlan } from '../plan.ts'
import { type Attachment, attach, type Parent, parentsOf } from './attachment/attachment.ts'
import { type Claims, createClaims } from './attachment/claims.ts'
import { listenersByGateway } from './attachment/listeners.ts'
import { validHostnames } from './connection-routes.ts'
import { attachedKeys, type Contribution } from './gateway-collector.ts'
import { createPlacement, hasSamePolicies, type PlacedRule, type PlaceRule } from './placement.ts'
import type { ReferenceTable, Resolutions } from './reference-table.ts'
import { createRegexCounts, type RegexCounts } from './regex-counts.ts'
import { createStates } from './route-order.ts'
import { isAccepted, type RuleFindings, routeStatus } from './route-status.ts'
import type { RoutesInput } from './routes-translation.ts'
import { createPolicyCheck } from './rules/policy-check.ts'
import type { CheckPolicies, RuleMistake, RulePlan } from './rules/rule-plan.ts'
import { planGrpcRule, planHttpRule, type RuleSurroundings } from './rules/rules.ts'

type RequestRoute = HTTPRoute | GRPCRoute

/** A route without its listeners and their policies. */
type RoutePlan = {
  readonly resolutions: Resolutions
  /** Valid hostnames; undefined for all. */
  readonly hostnames: readonly string[] | undefined
  readonly rules: readonly RulePlan[]
  /** Whether matches count towards a limit that routes share. */
  readonly hasRegexes: boolean
}

/** A route with its results in the last pass, and what they depend on. */
type RouteState = {
  readonly route: RequestRoute
  readonly key: ObjectKey
  readonly parents: readonly Parent[]
  readonly pass: { last: number }
  plans: readonly (GatewayPlan | undefined)[]
  attachments: readonly Attachment[]
  plan: RoutePlan | undefined
  result: RouteResult | undefined
}

type RouteResult = {
  /** Accepted and refused attachments, after conflicts with routes of the other kind. */
  readonly attachments: readonly Attachment[]
  readonly plan: RoutePlan
  /** The rules on each Gateway. */
  readonly placed: readonly PlacedRule[]
  readonly contribution: Contribution
}

/** State of one translation. */
type Pass = {
  readonly input: RoutesInput
  readonly plans: ReadonlyMap<ObjectKey, GatewayPlan>
  readonly claims: Claims | undefined
  readonly regexes: RegexCounts
}

/** Functions that all passes share. */
type Shared = {
  readonly table: ReferenceTable
  readonly place: PlaceRule
  readonly checkPolicies: CheckPolicies
}

/** Creates the translator of HTTPRoutes and GRPCRoutes. */
export function createRequestTranslator(
  table: ReferenceTable,
): (input: RoutesInput, plans: ReadonlyMap<ObjectKey, GatewayPlan>) => readonly Contribution[] {
  const statesOf = createStates<RequestRoute, RouteState>(createState, compareStates)
  const checkPolicies = createPolicyCheck()
  const shared: Shared = { table, checkPolicies, place: createPlacement(checkPolicies) }
  return (input, plans) => {
    const { objects } = input
    const hasBothKinds = objects.HTTPRoute.size > 0 && objects.GRPCRoute.size > 0
    const claims = hasBothKinds ? createClaims() : undefined
    const pass: Pass = { input, plans, claims, regexes: createRegexCounts(maxRegexMatches) }
    const contributions: Contribution[] = []
    for (const state of statesOf([objects.HTTPRoute, objects.GRPCRoute])) {
      const contribution = translateRoute(state, pass, shared)
      if (contribution !== undefined) contributions.push(contribution)
    }
    return contributions
  }
}

function createState(route: RequestRoute): RouteState {
  const parents = parentsOf(route)
  const empty = { plans: [], attachments: [], plan: undefined, result: undefined }
  return { route, key: keyOf(route), parents, pass: { last: 0 }, ...empty }
}

/** HTTPRoutes precede GRPCRoutes of the same age and name. */
function compareStates({ route: a }: RouteState, { route: b }: RouteState): number {
  return compareByAge(a, b) || (a.kind < b.kind ? 1 : a.kind > b.kind ? -1 : 0)
}

/** The result of a route: that of the last pass, if nothing has changed. Undefined without own parents. */
function translateRoute(state: RouteState, pass: Pass, shared: Shared): Contribution | undefined {
  const { route, key, parents } = state
  if (!parents.every(({ gateway }, index) => pass.plans.get(gateway) === state.plans[index])) {
    state.plans = parents.map(({ gateway }) => pass.plans.get(gateway))
    state.attachments = attach(route, parents, pass.plans)
  }
  if (state.attachments.length === 0) return undefined
  const attachments = pass.claims?.claim(route, key, state.attachments) ?? state.attachments
  const plan =
    state.plan !== undefined && shared.table.areCurrent(state.plan.resolutions)
      ? state.plan
      : planRoute(route, shared)
  state.plan = plan
  const { result } = state
  if (result !== undefined && isCurrent(result, attachments, plan, pass)) return result.contribution
  state.result = placeRoute(state, { plan, attachments }, pass, shared.place)
  return state.result.contribution
}

function isCurrent(
  result: RouteResult,
  attachments: readonly Attachment[],
  plan: RoutePlan,
  { input: { policies } }: Pass,
): boolean {
  if (result.plan !== plan || plan.hasRegexes || attachments.length !== result.attachments.length)
    return false
  // Only places of this pass are reported to the index.
  if (!attachments.every((one, index) => one === result.attachments[index])) return false
  return result.placed.every((rule) => hasSamePolicies(rule, policies))
}

function planRoute(route: RequestRoute, { table, checkPolicies }: Shared): RoutePlan {
  const resolutions = table.resolutionsOf(route)
  const mistakes: RuleMistake[] = []
  const hostnames = validHostnames(route.spec.hostnames, mistakes)
  const resolve: RuleSurroundings['resolve'] = (reference, at) => table.resolve(resolutions, reference, at)
  const rules = planRules(route, { resolve, checkPolicies, mistakes })
  const hasRegexes = rules.some(({ matches }) => matches?.some(({ path }) => path?.regex !== undefined))
  return { resolutions, hostnames, rules, hasRegexes }
}

function planRules(route: RequestRoute, surroundings: RuleSurroundings): readonly RulePlan[] {
  if (route.kind === 'GRPCRoute')
    return (route.spec.rules ?? []).map((rule, index) => planGrpcRule(rule, index, surroundings))
  // The default of the API: one rule for all requests.
  return (route.spec.rules ?? [{}]).map((rule, index) => planHttpRule(rule, index, surroundings))
}

const noFindings: RuleFindings = { rules: 0, invalid: [], mistakes: [] }

/** Places a route on its listeners. */
function placeRoute(
  { route, key, result }: RouteState,
  { plan, attachments }: { readonly plan: RoutePlan; readonly attachments: readonly Attachment[] },
  pass: Pass,
  place: PlaceRule,
): RouteResult {
  const findings = new Map<ObjectKey, RuleFindings>()
  const placedRules: PlacedRule[] = []
  const parts: Contribution['parts'][number][] = []
  const { rules, hostnames } = plan
  const isReachable = hostnames === undefined || hostnames.length > 0
  for (const [gateway, all] of listenersByGateway(attachments)) {
    const listeners = isReachable ? all.filter(({ reference }) => reference !== undefined) : []
    const at = { gateway, listeners, route: { kind: route.kind, key }, hostnames }
    const mistakes: RuleMistake[] = []
    const invalid: number[] = []
    for (const rule of rules) {
      const placed = place(rule, at, pass.input.policies, result?.placed[placedRules.length])
      placedRules.push(placed)
      const { configs, names, mistakes: ofPlace } = placed.outcome
      const excess = pass.regexes.add(gateway, hostnames, configs)
      const found = [...rule.mistakes, ...ofPlace, ...excessMistake(rule, excess)]
      if (excess === undefined) parts.push({ gateway, configs, names })
      mistakes.push(...found)
      if (found.length > 0) invalid.push(rule.index)
    }
    findings.set(gateway, { rules: rules.length, invalid, mistakes })
  }
  const parents = attachments.map((attachment) => ({
    attachment,
    findings: findings.get(attachment.gateway) ?? noFindings,
  }))
  const accepted = parents.filter((parent) => isAccepted(parent.attachment, parent.findings))
  const status = routeStatus(route, key, parents, plan.resolutions.unresolved)
  const contribution = {
    parts: [...parts],
    attached: attachedKeys(accepted.map(({ attachment }) => attachment)),
    status: shareStructure(result?.contribution.status, status),
  }
  return { attachments, plan, placed: [...placedRules], contribution }
}

function excessMistake({ index }: RulePlan, excess: string | undefined): RuleMistake[] {
  if (excess === undefined) return []
  return [{ reason: 'UnsupportedValue', message: `spec.rules[${index}].matches: ${excess}` }]
}
