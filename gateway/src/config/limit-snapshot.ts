import type { CompileContext } from '../pipeline/compile-context.ts'
import { type LimitSnapshot, takeLimitSnapshot } from '../policies/rate-limit/limit-snapshot.ts'
import { limitsByScope } from '../policies/registry/limit-variants.ts'
import { policyScopes } from './policy-scopes.ts'
import type { Config } from './schema.ts'
import { trafficSections } from './traffic/sections.ts'

/** Reads the current status of the rate limits of a configuration, by scope. */
export function readLimitsOf(config: Config, context: CompileContext): Promise<LimitSnapshot> {
  const places = policyScopes(config, trafficSections(config, context.cached)).flatMap(
    ({ name: place, policies }) => limitsByScope(place, policies),
  )
  return takeLimitSnapshot(places, context)
}
