import type { CompileContext } from '../pipeline/compile-context.ts'
import { type LimitReadings, readLimits } from '../policies/rate-limit/limit-snapshot.ts'
import { policyLevels } from './policy-levels.ts'
import type { Config } from './schema.ts'
import { trafficSections } from './traffic/sections.ts'

/** The rate limits of a Config that runs, by place and as they are now. */
export function readLimitsOf(config: Config, context: CompileContext): Promise<LimitReadings> {
  const places = policyLevels(config, trafficSections(config, context.cached)).map(({ place, policies }) => ({
    place,
    local: policies.localRateLimit ?? policies.rateLimit?.local ?? [],
    global: policies.remoteRateLimit ?? policies.rateLimit?.global,
  }))
  return readLimits(places, context)
}
