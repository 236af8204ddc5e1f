import { hostnameMistake } from '../../../pipeline/routing/hostnames.ts'
import type { BackendReference, TCPRoute, TLSRoute } from '../../objects/gateway-api.ts'
import type { BackendResolution, TcpRouteConfig } from '../plan.ts'
import type { RuleMistake } from './rules/rule-plan.ts'

/** A TLSRoute or TCPRoute, translated without its listeners. */
export type ConnectionPlan = {
  /** Valid server names; undefined for all connections of a listener. */
  readonly hostnames: readonly string[] | undefined
  readonly backends: TcpRouteConfig['backends']
  /** Names of the backends in use. */
  readonly names: readonly string[]
  readonly mistakes: readonly RuleMistake[]
  /** Indexes of rules with mistakes. */
  readonly invalid: readonly number[]
}

/**
 * Translates the only rule of a TLSRoute or TCPRoute. An invalid reference has its share of the connections,
 * which are rejected (Gateway API, `TCPRouteRule.backendRefs`).
 */
export function planConnections(
  route: TLSRoute | TCPRoute,
  resolve: (reference: BackendReference, at: string) => BackendResolution,
): ConnectionPlan {
  const mistakes: RuleMistake[] = []
  const names: string[] = []
  const hostnames = route.kind === 'TLSRoute' ? validHostnames(route.spec.hostnames, mistakes) : undefined
  const invalid: number[] = mistakes.length > 0 ? [0] : []
  const [rule, ...others] = route.spec.rules
  others.forEach((_, index) => {
    invalid.push(index + 1)
    const message = `spec.rules[${index + 1}]: ${route.kind} must have one rule`
    mistakes.push({ reason: 'UnsupportedValue', message })
  })
  const backends = (rule?.backendRefs ?? []).flatMap((reference, index): TcpRouteConfig['backends'] => {
    const { weight = 1 } = reference
    const at = `spec.rules[0].backendRefs[${index}]`
    const resolved = resolve(reference, at)
    if (weight === 0) return []
    const share = weight === 1 ? {} : { weight }
    if (resolved.kind === 'unresolved') return [{ reject: {}, ...share }]
    if (resolved.traffic !== 'http') {
      const message = `${at}: must refer to servers of connections`
      mistakes.push({ reason: 'UnsupportedValue', message })
      if (!invalid.includes(0)) invalid.unshift(0)
      return [{ reject: {}, ...share }]
    }
    names.push(resolved.name)
    return [{ backend: `/${resolved.name}`, ...share }]
  })
  const isValid = !invalid.includes(0)
  return {
    hostnames,
    backends: isValid && names.length > 0 ? backends : [{ reject: {} }],
    names: isValid ? names : [],
    mistakes,
    invalid,
  }
}

/** The valid hostnames of a route; undefined without any. Reports the others. */
export function validHostnames(
  hostnames: readonly string[] | undefined,
  mistakes: RuleMistake[],
): readonly string[] | undefined {
  if (hostnames === undefined || hostnames.length === 0) return undefined
  return hostnames.filter((hostname, index) => {
    const mistake = hostnameMistake(hostname)
    if (mistake === undefined) return true
    mistakes.push({ reason: 'UnsupportedValue', message: `spec.hostnames[${index}]: ${mistake}` })
    return false
  })
}
