import type { RouteMatchConfig } from '../../../../config/traffic/route-config.ts'
import type { BackendReference } from '../../../objects/gateway-api.ts'
import type { BackendResolution, BackendTraffic, RouteConfig } from '../../plan.ts'

export type RoutePolicies = NonNullable<RouteConfig['policies']>
export type RouteBackends = NonNullable<RouteConfig['backends']>

/** A mistake that makes a rule answer 500. `message` begins with the path of the value. */
export type RuleMistake = {
  /** Reason of the condition Accepted. */
  readonly reason: 'UnsupportedValue' | 'IncompatibleFilters'
  readonly message: string
}

/** A rule of an HTTPRoute or GRPCRoute, translated without its listeners and their policies. */
export type RulePlan = {
  readonly index: number
  readonly name: string | undefined
  /** Valid matches; undefined matches all requests, an empty list none. */
  readonly matches: readonly RouteMatchConfig[] | undefined
  /** Policies from filters, timeouts and retries. */
  readonly policies: RoutePolicies | undefined
  readonly backends: RouteBackends
  readonly traffic: BackendTraffic
  /** Whether a redirect takes the port of the listener. */
  readonly redirectsToListenerPort: boolean
  /** Names of the backends in use. */
  readonly names: readonly string[]
  readonly mistakes: readonly RuleMistake[]
}

/** The first mistake of policies: the policy, and a message that begins with the path of the value. */
export type PolicyMistake = { readonly policy: string; readonly message: string }

/**
 * Checks policies of routes of a kind of traffic. `names` are those of the backends that the policies refer
 * to.
 */
export type CheckPolicies = (
  policies: RoutePolicies,
  traffic: BackendTraffic,
  names: readonly string[],
) => PolicyMistake | undefined

/** Functions for the translation of one rule. */
export type RuleContext = {
  /** Resolves a reference at a path below the rule, and reports failures in the condition ResolvedRefs. */
  resolve(reference: BackendReference, at: string): BackendResolution
  /** Reports a mistake at a path below the rule. */
  report(at: string, message: string, reason?: RuleMistake['reason']): void
  checkPolicies: CheckPolicies
}
