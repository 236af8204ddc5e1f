import type { RouteBackendReference } from '../../../objects/gateway-api.ts'
import type { BackendTraffic } from '../../plan.ts'
import { translateBackendFilters } from './filters.ts'
import type { RouteBackends, RuleContext } from './rule-plan.ts'

/** The destinations of a rule. */
export type RuleBackends = {
  readonly backends: RouteBackends
  readonly traffic: BackendTraffic
  /** Whether a backend is an agent with the A2A protocol. */
  readonly hasAgent: boolean
  /** Names of the backends in use. */
  readonly names: readonly string[]
}

export type BackendRules = {
  /** Status in place of a backend that cannot be used. */
  readonly errorStatus: number
}

/** gRPC clients map 503 to `UNAVAILABLE`, which the Gateway API requires. */
export const grpcRules: BackendRules = { errorStatus: 503 }
export const httpRules: BackendRules = { errorStatus: 500 }

/** A rule without a usable backend: an error for every request. */
export function errorBackends({ errorStatus: status }: BackendRules, message?: string): RouteBackends {
  return [{ error: { status, ...(message === undefined ? {} : { message }) } }]
}

/**
 * Translates the backends of a rule. An invalid reference has its share of the requests, which are answered
 * with an error; so are all requests without a backend of positive weight.
 */
export function translateBackends(
  references: readonly RouteBackendReference[] | undefined,
  rules: BackendRules,
  { resolve, report, checkPolicies }: RuleContext,
): RuleBackends {
  let traffic: BackendTraffic = 'http'
  let hasAgent = false
  const names: string[] = []
  const backends = (references ?? []).flatMap((reference, index): RouteBackends => {
    const { weight = 1, filters } = reference
    const at = `backendRefs[${index}]`
    const resolved = resolve(reference, at)
    const modifiers = translateBackendFilters(filters, `${at}.filters`, report)
    const mistake = filters === undefined ? undefined : checkPolicies(modifiers, 'http', [])
    if (mistake !== undefined) report(`${at}.filters`, mistake.message)
    if (weight === 0) return []
    const share = weight === 1 ? {} : { weight }
    if (resolved.kind === 'unresolved') return [{ error: { status: rules.errorStatus }, ...share }]
    names.push(resolved.name)
    if (resolved.traffic !== 'http') traffic = resolved.traffic
    if (resolved.isAgent === true) hasAgent = true
    const policies = Object.keys(modifiers).length === 0 ? {} : { policies: modifiers }
    return [{ backend: `/${resolved.name}`, ...share, ...policies }]
  })
  if (traffic !== 'http' && names.length > 1) {
    const instead = traffic === 'llm' ? 'providers' : 'targets'
    report(
      'backendRefs',
      `a GatewayBackend with ${traffic === 'llm' ? 'ai' : 'mcp'} must be the only backend: use its ${instead}`,
    )
  }
  return { backends: names.length === 0 ? errorBackends(rules) : backends, traffic, hasAgent, names }
}
