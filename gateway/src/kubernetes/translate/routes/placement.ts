import { respondsAlways } from '../../../policies/registry/check.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { ListenerPlan, RouteConfig } from '../plan.ts'
import type { Effective, PolicyIndex, PolicyPlace } from '../policies/policies.ts'
import { type BackendRules, errorBackends, grpcRules, httpRules } from './rules/backend-refs.ts'
import { redirectAuthority } from './rules/filters.ts'
import type { CheckPolicies, RouteBackends, RoutePolicies, RuleMistake, RulePlan } from './rules/rule-plan.ts'
import { type AddRulePolicies, createRulePolicies } from './rules/rule-policies.ts'
import { invalidRuleMessage } from './rules/rules.ts'

/** The listeners of one Gateway that serve a route. */
export type Place = {
  readonly gateway: ObjectKey
  /** Listeners that serve requests. */
  readonly listeners: readonly ListenerPlan[]
  readonly route: { readonly kind: 'HTTPRoute' | 'GRPCRoute'; readonly key: ObjectKey }
  readonly hostnames: readonly string[] | undefined
}

/** A rule on the listeners of a Gateway. */
export type PlacedRule = {
  readonly plan: RulePlan
  readonly gateway: ObjectKey
  readonly variants: readonly Variant[]
  readonly outcome: PlacedOutcome
}

export type PlacedOutcome = {
  readonly configs: readonly RouteConfig[]
  /** Names of the backends in use, with those of policies. */
  readonly names: readonly string[]
  readonly mistakes: readonly RuleMistake[]
}

/** Places a rule. Unchanged inputs have the routes of the previous result. */
export type PlaceRule = (
  plan: RulePlan,
  at: Place,
  policies: PolicyIndex,
  previous: PlacedRule | undefined,
) => PlacedRule

/** Listeners with the same policies and the same redirects: one route of the Config. */
export type Variant = {
  readonly effective: Effective
  /** Port of redirects; undefined if it does not depend on the listener. */
  readonly port: number | undefined
  readonly listeners: ListenerPlan[]
  /** A place for each of the listeners. */
  readonly places: PolicyPlace[]
}

type Tools = { readonly checkPolicies: CheckPolicies; readonly addRulePolicies: AddRulePolicies }

/** Creates the function that places rules on listeners. */
export function createPlacement(checkPolicies: CheckPolicies): PlaceRule {
  const tools = { checkPolicies, addRulePolicies: createRulePolicies() }
  return (plan, at, policies, previous) => {
    const variants = variantsOf(plan, at, policies)
    const { gateway } = at
    const isSame =
      previous !== undefined &&
      previous.plan === plan &&
      previous.gateway === gateway &&
      areEqual(previous.variants, variants)
    if (isSame) return previous
    return { plan, gateway, variants, outcome: placeVariants(plan, at, variants, tools) }
  }
}

/** Whether all policies of a placed rule are the same in this pass; reports its places to the index. */
export function hasSamePolicies({ variants }: PlacedRule, policies: PolicyIndex): boolean {
  return variants.every(({ effective, places }) =>
    places.every((place) => policies.policiesOf(place) === effective),
  )
}

/** Undefined for a rule without backends: that of its backends is unknown. */
function trafficOf({ names, policies, traffic }: RulePlan): PolicyPlace['traffic'] {
  return names.length === 0 && policies?.requestRedirect === undefined ? undefined : traffic
}

function variantsOf(
  plan: RulePlan,
  { gateway, listeners, route }: Place,
  policies: PolicyIndex,
): readonly Variant[] {
  const { name: rule, redirectsToListenerPort } = plan
  const traffic = trafficOf(plan)
  let variants: readonly Variant[] = []
  for (const listener of listeners) {
    const place: PolicyPlace = { gateway, listener: listener.name, route, rule, traffic }
    const effective = policies.policiesOf(place)
    const port = redirectsToListenerPort ? listener.port : undefined
    const same = variants.find((one) => one.effective === effective && one.port === port)
    if (same === undefined) {
      // Lists of exact length: there is one for each rule of the cluster.
      variants = [...variants, { effective, port, listeners: [listener], places: [place] }]
      continue
    }
    same.listeners.push(listener)
    same.places.push(place)
  }
  return variants
}

function areEqual(some: readonly Variant[], others: readonly Variant[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, index) => {
      const other = others[index]
      return (
        other !== undefined &&
        one.effective === other.effective &&
        one.port === other.port &&
        one.listeners.length === other.listeners.length &&
        one.listeners.every(({ reference }, at) => reference === other.listeners[at]?.reference)
      )
    })
  )
}

function placeVariants(
  plan: RulePlan,
  place: Place,
  variants: readonly Variant[],
  tools: Tools,
): PlacedOutcome {
  const mistakes: RuleMistake[] = []
  const names = new Set<string>()
  // No match, or no valid one.
  if (plan.matches?.length === 0) return { configs: [], names: [], mistakes }
  const base = `${place.route.kind}/${place.route.key}/${plan.index}`
  const errors = place.route.kind === 'GRPCRoute' ? grpcRules : httpRules
  const configs = variants.map((variant): RouteConfig => {
    const [first] = variant.listeners
    const { policies, backends, mistake, ...used } = outcomeOf(plan, variant, errors, tools)
    if (mistake !== undefined) mistakes.push(mistake)
    for (const name of used.names) names.add(name)
    return {
      name: variants.length === 1 ? base : `${base}@${first?.name}`,
      gateways: variant.listeners.flatMap(({ reference }) => reference ?? []),
      ...(place.hostnames && place.hostnames.length > 0 && { hostnames: [...place.hostnames] }),
      ...(plan.matches && { matches: [...plan.matches] }),
      ...(policies && { policies }),
      ...(backends.length > 0 && { backends }),
    }
  })
  return { configs, names: [...names], mistakes }
}

type Outcome = {
  readonly policies: RoutePolicies | undefined
  readonly backends: RouteBackends
  readonly names: readonly string[]
  readonly mistake: RuleMistake | undefined
}

/** The policies and backends of a variant. A mistake or an invalid policy answers every request. */
function outcomeOf(
  plan: RulePlan,
  { effective, port }: Variant,
  errors: BackendRules,
  { checkPolicies, addRulePolicies }: Tools,
): Outcome {
  const refused = {
    policies: undefined,
    backends: errorBackends(errors, invalidRuleMessage),
    names: [],
    mistake: undefined,
  }
  if (plan.mistakes.length > 0 || effective.denied !== undefined) return refused
  const own = port === undefined ? plan.policies : withRedirectPort(plan.policies, port)
  const policies = addRulePolicies(effective, own)
  const mayRespond = (policies?.directResponse ?? policies?.requestRedirect) !== undefined
  // Every request receives an error, before any policy.
  if (plan.names.length === 0 && !mayRespond) return { ...refused, backends: plan.backends }
  const responds = policies !== undefined && respondsAlways(policies)
  const names = [...plan.names, ...effective.backends]
  const mistake = policies && effective.policies && checkPolicies(policies, plan.traffic, names)
  if (mistake === undefined)
    return { policies, backends: responds ? [] : plan.backends, names, mistake: undefined }
  const message = `spec.rules[${plan.index}]: must fit its GatewayPolicies: ${mistake.message}`
  return { ...refused, mistake: { reason: 'UnsupportedValue', message } }
}

/**
 * A redirect without scheme and port has the port of the listener (Gateway API,
 * `HTTPRequestRedirectFilter`).
 */
function withRedirectPort(policies: RoutePolicies | undefined, port: number): RoutePolicies | undefined {
  if (policies?.requestRedirect === undefined) return policies
  const { requestRedirect } = policies
  const authority = redirectAuthority(requestRedirect.authority?.host, port)
  return { ...policies, requestRedirect: { ...requestRedirect, ...(authority && { authority }) } }
}
