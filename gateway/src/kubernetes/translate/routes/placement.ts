import type { ObjectKey } from '../../objects/meta.ts'
import type { ListenerPlan, RouteConfig } from '../plan.ts'
import { type Effective, type PolicyIndex, type PolicyPlace, withRulePolicies } from '../policies/policies.ts'
import { type BackendRules, errorBackends, grpcRules, httpRules } from './rules/backend-refs.ts'
import { redirectAuthority } from './rules/filters.ts'
import type { CheckPolicies, RouteBackends, RoutePolicies, RuleMistake, RulePlan } from './rules/rule-plan.ts'
import { invalidRuleMessage } from './rules/rules.ts'

/** The listeners of one Gateway that serve a route. */
export type Place = {
  readonly gateway: ObjectKey
  /** Listeners that serve requests. */
  readonly listeners: readonly ListenerPlan[]
  readonly route: { readonly kind: 'HTTPRoute' | 'GRPCRoute'; readonly key: ObjectKey }
  readonly hostnames: readonly string[] | undefined
}

/** The policies of a place. */
export type PlacedPolicies = { readonly place: PolicyPlace; readonly effective: Effective }

/** A rule as routes of the Config of one Gateway. */
export type PlacedRule = {
  readonly policies: readonly PlacedPolicies[]
  readonly configs: readonly RouteConfig[]
  /** Names of the backends in use, with those of policies. */
  readonly names: readonly string[]
  readonly mistakes: readonly RuleMistake[]
}

export type PlaceRule = (plan: RulePlan, place: Place, policies: PolicyIndex) => PlacedRule

/** Listeners with the same policies and the same redirects: one route of the Config. */
type Variant = {
  readonly effective: Effective
  /** Port of redirects; undefined if it does not depend on the listener. */
  readonly port: number | undefined
  readonly listeners: ListenerPlan[]
}

type Cached = { readonly variants: readonly Variant[]; readonly placed: Omit<PlacedRule, 'policies'> }

/** Creates the function that places rules on listeners. Unchanged inputs have the same routes. */
export function createPlacement(checkPolicies: CheckPolicies): PlaceRule {
  const cache = new WeakMap<RulePlan, Map<ObjectKey, Cached>>()
  return (plan, at, policies) => {
    const { gateway, listeners, route } = at
    const { name: rule, traffic } = plan
    const found = listeners.map((listener) => {
      const place: PolicyPlace = { gateway, listener: listener.name, route, rule, traffic }
      return { listener, place, effective: policies.policiesOf(place) }
    })
    const variants = variantsOf(plan, found)
    const ofPlan: Map<ObjectKey, Cached> = cache.get(plan) ?? new Map()
    const known = ofPlan.get(gateway)
    const isKnown = known !== undefined && areEqual(known.variants, variants)
    const placed = isKnown ? known.placed : placeVariants(plan, at, variants, checkPolicies)
    if (!isKnown) cache.set(plan, ofPlan.set(gateway, { variants, placed }))
    return { ...placed, policies: found }
  }
}

function variantsOf(
  { redirectsToListenerPort }: RulePlan,
  found: readonly { readonly listener: ListenerPlan; readonly effective: Effective }[],
): readonly Variant[] {
  const variants: Variant[] = []
  for (const { listener, effective } of found) {
    const port = redirectsToListenerPort ? listener.port : undefined
    const same = variants.find((one) => one.effective === effective && one.port === port)
    if (same === undefined) variants.push({ effective, port, listeners: [listener] })
    else same.listeners.push(listener)
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
  checkPolicies: CheckPolicies,
): Omit<PlacedRule, 'policies'> {
  const mistakes: RuleMistake[] = []
  const names = new Set<string>()
  // No match, or no valid one.
  if (plan.matches?.length === 0) return { configs: [], names: [], mistakes }
  const base = `${place.route.kind}/${place.route.key}/${plan.index}`
  const errors = place.route.kind === 'GRPCRoute' ? grpcRules : httpRules
  const configs = variants.map((variant): RouteConfig => {
    const [first] = variant.listeners
    const { policies, backends, mistake, ...used } = outcomeOf(plan, variant, errors, checkPolicies)
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
  checkPolicies: CheckPolicies,
): Outcome {
  const refused = {
    policies: undefined,
    backends: errorBackends(errors, invalidRuleMessage),
    names: [],
    mistake: undefined,
  }
  if (plan.mistakes.length > 0 || effective.denied !== undefined) return refused
  const own = port === undefined ? plan.policies : withRedirectPort(plan.policies, port)
  const policies = withRulePolicies(effective, own)
  const responds = (policies?.directResponse ?? policies?.requestRedirect) !== undefined
  // Every request receives an error, before any policy.
  if (plan.names.length === 0 && !responds) return { ...refused, backends: plan.backends }
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
